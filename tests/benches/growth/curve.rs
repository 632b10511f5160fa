//! The times of a cost at several sizes, and the exponent of its growth.
//!
//! Rule: everything is computed from the medians alone.

use kode_e2e::measure::{Spread, figure, heading, row};

/// The growth that a cost may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// None: it depends on something else.
    Flat,
    /// As the size.
    Linear,
}

impl Growth {
    /// The largest exponent, as a budget: what a machine's noise makes of 0 and of 1.
    fn budget(self) -> &'static str {
        match self {
            Self::Flat => "0.1",
            Self::Linear => "1.05",
        }
    }
}

/// A cost over sizes.
pub(crate) struct Curve {
    pub(crate) cost: &'static str,
    pub(crate) of: &'static str,
    pub(crate) growth: Growth,
    /// In the order of the sizes.
    pub(crate) points: Vec<(usize, Spread)>,
}

impl Curve {
    /// The exponent over all sizes.
    pub(crate) fn exponent(&self) -> f64 {
        slope(&self.logarithms())
    }

    /// The exponent between the two largest sizes.
    pub(crate) fn last_exponent(&self) -> f64 {
        let points = self.logarithms();
        slope(&points[points.len().saturating_sub(2)..])
    }

    pub(crate) fn print(&self) {
        heading(&format!("{}, by {}", self.cost, self.of));
        for (size, spread) in &self.points {
            row(&format!("{size} {}", self.of), spread, "");
        }
        // A cost that is flat by promise may have a step at one size; a linear one must not be steeper anywhere late.
        let (all, last) = match self.growth {
            Growth::Flat => (self.growth.budget(), ""),
            Growth::Linear => ("", self.growth.budget()),
        };
        figure("exponent over all sizes", self.exponent(), "", all);
        figure("exponent between the two largest", self.last_exponent(), "", last);
    }

    fn logarithms(&self) -> Vec<(f64, f64)> {
        self.points.iter().map(|(size, spread)| ((*size as f64).ln(), spread.median.ln())).collect()
    }
}

/// The slope of the line with the least squares through these points; 0 through fewer than two.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let products: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if squares == 0.0 { 0.0 } else { products / squares }
}

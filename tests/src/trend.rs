//! Whether a figure that is taken again and again grows, and how it looks.
//!
//! Rule: everything is computed from the values alone; the measuring code decides what growth is too much.

use std::fmt::Write as _;

/// The share of the values at the beginning that do not count: caches fill, pools grow.
const WARM_UP: f64 = 0.25;

/// The most values that a slope is computed from; more of them are thinned out evenly.
const MAX_VALUES: usize = 400;

/// The columns of a line of bars.
const COLUMNS: usize = 60;

/// A figure over time.
#[derive(Clone, Debug)]
pub struct Trend {
    /// Its name, with its unit.
    pub name: &'static str,
    /// The values, in order, one for each step.
    pub values: Vec<f64>,
    /// How much it may grow after the warm-up.
    pub allowed: Allowed,
}

/// How much growth still counts as none.
#[derive(Clone, Copy, Debug)]
pub enum Allowed {
    /// This amount.
    Absolute(f64),
    /// This share of the value in the middle, or this amount if that is more.
    Share(f64, f64),
}

impl Trend {
    /// The values that count.
    fn settled(&self) -> &[f64] {
        let skipped = (self.values.len() as f64 * WARM_UP).ceil() as usize;
        &self.values[skipped.min(self.values.len())..]
    }

    /// The value in the middle of those that count; 0 if none exist.
    #[must_use]
    pub fn level(&self) -> f64 {
        median(self.settled().to_vec())
    }

    /// The growth in one step: the middle of the slopes between any two values that count, so that no outlier decides.
    #[must_use]
    pub fn slope(&self) -> f64 {
        let settled = self.settled();
        let every = settled.len().div_ceil(MAX_VALUES).max(1);
        let points: Vec<(f64, f64)> =
            settled.iter().enumerate().step_by(every).map(|(at, value)| (at as f64, *value)).collect();
        let slopes = points.iter().enumerate().flat_map(|(number, (from, before))| {
            points[number + 1..].iter().map(move |(to, after)| (after - before) / (to - from))
        });
        median(slopes.collect())
    }

    /// The growth over all that counts.
    #[must_use]
    pub fn growth(&self) -> f64 {
        self.slope() * self.settled().len() as f64
    }

    /// The growth that still counts as none.
    #[must_use]
    pub fn limit(&self) -> f64 {
        match self.allowed {
            Allowed::Absolute(limit) => limit,
            Allowed::Share(share, least) => (self.level() * share).max(least),
        }
    }

    /// Whether it does not grow. Falling is no fault.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        self.growth() <= self.limit()
    }

    /// The values as one line of bars, from the least to the most.
    #[must_use]
    pub fn bars(&self) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let (least, most) = ends(&self.values);
        let every = self.values.len().div_ceil(COLUMNS).max(1);
        let bar = |chunk: &[f64]| {
            let share = (median(chunk.to_vec()) - least) / (most - least).max(f64::MIN_POSITIVE);
            BARS[((share * 8.0) as usize).min(7)]
        };
        self.values.chunks(every).map(bar).collect()
    }

    /// One line for people: bars, level, growth and whether that is flat.
    #[must_use]
    pub fn line(&self) -> String {
        let (least, most) = ends(&self.values);
        let verdict = if self.is_flat() { "flat" } else { "GROWS" };
        format!(
            "{:<34}{:<COLUMNS$} {least:>9.1} … {most:<9.1} level {:>8.1}  growth {:>+8.2} of {:.2}  {verdict}",
            self.name,
            self.bars(),
            self.level(),
            self.growth(),
            self.limit(),
        )
    }
}

/// The figures as a picture, one below the other over the same steps.
#[must_use]
pub fn svg(title: &str, trends: &[Trend]) -> String {
    const WIDTH: f64 = 900.0;
    const HEIGHT: f64 = 90.0;
    const LEFT: f64 = 330.0;
    const TOP: f64 = 50.0;
    let total = TOP + trends.len() as f64 * (HEIGHT + 30.0);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{total}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"24\" font-size=\"16\">{title}</text>\n",
        LEFT + WIDTH + 20.0,
    );
    for (number, trend) in trends.iter().enumerate() {
        let top = TOP + number as f64 * (HEIGHT + 30.0);
        let (_, most) = ends(&trend.values);
        let most = most.max(1.0) * 1.05;
        let step = WIDTH / (trend.values.len().max(2) - 1) as f64;
        let points = trend.values.iter().enumerate().fold(String::new(), |mut points, (at, value)| {
            let (x, y) = (LEFT + at as f64 * step, top + HEIGHT * (1.0 - value / most));
            // Writing to a string cannot fail.
            let _ = write!(points, "{x:.1},{y:.1} ");
            points
        });
        let color = if trend.is_flat() { "#2b7a3d" } else { "#b3261e" };
        let (name, verdict) = (trend.name, if trend.is_flat() { "flat" } else { "grows" });
        let _ = write!(
            picture,
            "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{:.1}\" height=\"{HEIGHT}\" fill=\"#eeeeee\"/>\n\
             <path d=\"M{LEFT},{top} v{HEIGHT} h{WIDTH}\" fill=\"none\" stroke=\"#888888\"/>\n\
             <polyline points=\"{points}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>\n\
             <text x=\"10\" y=\"{:.1}\">{name}</text>\n\
             <text x=\"10\" y=\"{:.1}\" fill=\"{color}\">level {:.1}, growth {:+.2} of {:.2}: {verdict}</text>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{most:.0}</text>\n",
            WIDTH * WARM_UP,
            top + 34.0,
            top + 52.0,
            trend.level(),
            trend.growth(),
            trend.limit(),
            LEFT - 6.0,
            top + 12.0,
        );
    }
    picture.push_str("</svg>\n");
    picture
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn ends(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.is_empty() { (0.0, 0.0) } else { (least, most) }
}

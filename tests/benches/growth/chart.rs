//! The curves as charts in one SVG, three in a row, each with both axes by their logarithms.
//!
//! Rule: no font, script or file of elsewhere; colors that are read on a light and on a dark page.

use std::fmt::Write as _;

use crate::curve::{Curve, Growth};

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 200.0;
const IN_A_ROW: usize = 3;
/// The space around a chart for its axes: left, top, right, bottom.
const MARGINS: [f64; 4] = [52.0, 34.0, 14.0, 38.0];

/// All curves, in their order.
pub(crate) fn svg(curves: &[Curve]) -> String {
    let rows = curves.len().div_ceil(IN_A_ROW).max(1);
    let (width, height) = (WIDTH * IN_A_ROW as f64, HEIGHT * rows as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"Costs by the size of what they depend on\" font-family=\"sans-serif\" font-size=\"10\" fill=\"#777\">\n"
    );
    for (at, curve) in curves.iter().enumerate() {
        let (x, y) = ((at % IN_A_ROW) as f64 * WIDTH, (at / IN_A_ROW) as f64 * HEIGHT);
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
        draw(&mut svg, curve);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// The powers of ten that enclose these values.
fn decades(values: impl Iterator<Item = f64> + Clone) -> (i32, i32) {
    let low = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
    let high = values.fold(0.0, f64::max).log10().ceil();
    (low as i32, (high as i32).max(low as i32 + 1))
}

fn draw(svg: &mut String, curve: &Curve) {
    let [left, top, right, bottom] = MARGINS;
    let sizes = curve.points.iter().map(|(size, _)| *size as f64);
    let (low_size, high_size) = decades(sizes);
    let (low_time, high_time) = decades(curve.points.iter().flat_map(|(_, spread)| [spread.min, spread.max]));
    let share = |value: f64, low: i32, high: i32| (value.log10() - f64::from(low)) / f64::from(high - low);
    let x = |size: f64| left + share(size, low_size, high_size) * (WIDTH - left - right);
    let y = |time: f64| HEIGHT - bottom - share(time, low_time, high_time) * (HEIGHT - top - bottom);

    let may = if curve.growth == Growth::Flat { "may be 0" } else { "may be 1" };
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"14\" font-weight=\"bold\">{}</text>", escaped(curve.cost));
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"27\">exponent {:.2}, at the end {:.2} ({may})</text>",
        curve.exponent(),
        curve.last_exponent()
    );
    for decade in low_size..=high_size {
        let at = x(10_f64.powi(decade));
        let _ = writeln!(
            svg,
            "<path d=\"M{at:.1} {top}V{:.1}\" stroke=\"#777\" stroke-opacity=\".3\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{}</text>",
            HEIGHT - bottom,
            HEIGHT - bottom + 13.0,
            count(decade),
        );
    }
    for decade in low_time..=high_time {
        let at = y(10_f64.powi(decade));
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {at:.1}H{:.1}\" stroke=\"#777\" stroke-opacity=\".3\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            WIDTH - right,
            left - 4.0,
            at + 3.0,
            seconds(decade),
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        (left + WIDTH - right) / 2.0,
        HEIGHT - bottom + 27.0,
        escaped(curve.of)
    );
    let line: Vec<String> = curve
        .points
        .iter()
        .map(|(size, spread)| format!("{:.1} {:.1}", x(*size as f64), y(spread.median)))
        .collect();
    let _ = writeln!(
        svg,
        "<path d=\"M{}\" fill=\"none\" stroke=\"#3b82c4\" stroke-width=\"2\"/>",
        line.join("L")
    );
    for (size, spread) in &curve.points {
        let at = x(*size as f64);
        let _ = writeln!(
            svg,
            "<path d=\"M{at:.1} {:.1}V{:.1}\" stroke=\"#3b82c4\"/><circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"#3b82c4\"/>",
            y(spread.min),
            y(spread.max),
            y(spread.median)
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('`', "")
}

/// A power of ten as people write it.
fn count(decade: i32) -> String {
    match decade {
        ..=2 => format!("{}", 10_u32.pow(u32::try_from(decade).unwrap_or_default())),
        3..=5 => format!("{} k", 10_u32.pow(u32::try_from(decade - 3).unwrap_or_default())),
        _ => format!("{} M", 10_u32.pow(u32::try_from(decade - 6).unwrap_or_default())),
    }
}

/// A power of ten of seconds.
fn seconds(decade: i32) -> String {
    let (unit, exponent) = match decade {
        ..=-7 => ("ns", decade + 9),
        -6..=-4 => ("µs", decade + 6),
        -3..=-1 => ("ms", decade + 3),
        _ => ("s", decade),
    };
    format!("{} {unit}", 10_u32.pow(u32::try_from(exponent).unwrap_or_default()))
}

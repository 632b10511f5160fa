//! The measure of the soak: a figure that grows differs from one that does not, however it jitters.

use kode_e2e::trend::{Allowed, Trend, svg};

fn trend(allowed: Allowed, value: impl Fn(usize) -> f64) -> Trend {
    Trend { name: "figure", values: (0..200).map(value).collect(), allowed }
}

/// Something between -1 and 1 that follows no line.
fn jitter(step: usize) -> f64 {
    (step * 7_919 % 101) as f64 / 50.0 - 1.0
}

#[test]
fn a_slow_climb_is_growth_and_jitter_is_none() {
    let share = Allowed::Share(0.1, 2.0);
    assert!(trend(share, |step| 20.0 + jitter(step)).is_flat());
    // A hundredth in each step: 1.5 over the 150 steps that count, and 4.5.
    assert!(trend(share, |step| 20.0 + jitter(step) + 0.01 * step as f64).is_flat());
    assert!(!trend(share, |step| 20.0 + jitter(step) + 0.03 * step as f64).is_flat());
    assert!(!trend(Allowed::Absolute(1.0), |step| (step / 50) as f64).is_flat(), "one more now and then");
}

#[test]
fn the_warm_up_an_outlier_and_a_fall_are_no_growth() {
    let counts = Allowed::Absolute(2.0);
    assert!(trend(counts, |step| step.min(50) as f64).is_flat(), "a pool that fills");
    assert!(trend(counts, |step| if step == 180 { 1_000.0 } else { 5.0 }).is_flat());
    assert!(trend(counts, |step| 300.0 - step as f64).is_flat());
}

#[test]
fn the_plot_shows_each_figure_and_which_of_them_grows() {
    let trends = [trend(Allowed::Absolute(2.0), |_| 5.0), trend(Allowed::Absolute(2.0), |step| step as f64)];
    let picture = svg("a soak", &trends);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert_eq!((picture.matches("<polyline").count(), picture.matches(": grows<").count()), (2, 1));
    assert!(trends[1].line().contains("GROWS") && trends[1].bars().starts_with('▁'), "{}", trends[1].line());
}

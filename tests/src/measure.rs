//! Measuring for the benchmarks: many runs after a warm-up, their median with minimum and maximum, and a table of them.
//!
//! Rule: a time is beside a floor that was measured by turns with it, because the time of one machine says nothing
//! about another. Measurements are only printed: a mark says whether a budget is met, and nothing fails by it.

#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::fmt;
use std::time::{Duration, Instant};

/// The times of some runs, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The one in the middle.
    pub median: f64,
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
}

impl Spread {
    /// The spread of times, each of which was spent on `parts` equal things.
    ///
    /// # Panics
    /// When there are no times.
    #[must_use]
    pub fn of(mut times: Vec<Duration>, parts: u32) -> Self {
        times.sort();
        let at = |index: usize| times[index].as_secs_f64() / f64::from(parts);
        Self { median: at(times.len() / 2), min: at(0), max: at(times.len() - 1) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for seconds in [self.median, self.min, self.max] {
            let (value, unit) = if seconds < 1e-3 { (seconds * 1e6, "µs") } else { (seconds * 1e3, "ms") };
            write!(formatter, "{value:>9.2} {unit}")?;
        }
        Ok(())
    }
}

/// How long `work` takes.
pub fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let made = work();
    let time = start.elapsed();
    drop(made);
    time
}

/// Runs all measurements by turns, `warm_up` times without counting and then `runs` times, and gives the times of each.
pub fn by_turns<const N: usize>(
    warm_up: usize,
    runs: usize,
    mut measure: [&mut dyn FnMut() -> Duration; N],
) -> [Vec<Duration>; N] {
    // To see whether a benchmark works, one run is enough.
    let is_tiny = std::env::var("KODE_BENCH_TINY").is_ok_and(|value| !value.is_empty());
    let (warm_up, runs) = if is_tiny { (0, 1) } else { (warm_up, runs) };
    let mut times = [const { Vec::new() }; N];
    for run in 0..warm_up + runs {
        for (times, measure) in times.iter_mut().zip(&mut measure) {
            let time = measure();
            if run >= warm_up {
                times.push(time);
            }
        }
    }
    times
}

/// Begins a table.
pub fn heading(what: &str) {
    println!("\n{what:<52}{:>12}{:>12}{:>12}  budget", "median", "min", "max");
}

/// A line of times in the table.
pub fn row(what: &str, spread: &Spread, budget: &str) {
    let (value, unit) = budget.split_once(' ').unwrap_or((budget, ""));
    let second = [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)].into_iter().find(|(name, _)| *name == unit);
    let limit = second.and_then(|(_, second)| Some(value.parse::<f64>().ok()? * second));
    println!("{what:<52}{spread}  {budget}{}", mark(spread.median, limit));
}

/// A line that is one figure in the table: a ratio, a size, an exponent.
pub fn figure(what: &str, value: f64, unit: &str, budget: &str) {
    let limit = budget.strip_suffix(unit).and_then(|limit| limit.parse().ok());
    println!("{what:<52}{:>12}{:24}  {budget}{}", format!("{value:.2}{unit}"), "", mark(value, limit));
}

/// The ratio of a figure to its limit.
fn mark(value: f64, limit: Option<f64>) -> &'static str {
    match limit {
        Some(limit) if value > limit => "  OVER",
        Some(_) => "  ok",
        None => "",
    }
}

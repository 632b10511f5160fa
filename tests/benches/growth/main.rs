//! How costs grow with the size of what they depend on: sessions, items, hunks, documents, rules, skills, files, windows.
//!
//! Rule: everything goes over the wire of the built program. Each cost is measured at every size, and the exponent is that
//! of the straight line through the logarithms: 0 is flat, 1 is linear. A fixed part hides growth at small sizes, so that the
//! slope between the two largest sizes counts as well. Nothing here passes or fails.
//!
//! Run it with `tests/bench growth`. After `--`, names choose subjects, and a file name that ends in `.svg` gets the charts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::time::Duration;

use kode_e2e::measure::Spread;

use crate::curve::{Curve, Growth};

mod chart;
mod curve;
mod subjects;

/// A cost and the size that it is measured over.
struct Subject {
    /// One word, for the command line.
    name: &'static str,
    /// The size, in the plural.
    of: &'static str,
    /// The cost.
    cost: &'static str,
    sizes: &'static [usize],
    growth: Growth,
    /// The times at a size, each of one thing.
    measure: fn(usize) -> Vec<Duration>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let (files, names): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.ends_with(".svg"));
    let known = subjects::all();
    for name in &names {
        assert!(known.iter().any(|subject| subject.name == name), "there is no subject `{name}`");
    }
    let is_tiny = std::env::var("KODE_BENCH_TINY").is_ok_and(|value| !value.is_empty());
    println!("{}", kode_e2e::binary().display());
    let mut curves = Vec::new();
    for subject in
        known.iter().filter(|subject| names.is_empty() || names.iter().any(|name| name == subject.name))
    {
        let sizes = if is_tiny { &subject.sizes[..2] } else { subject.sizes };
        let points = sizes.iter().map(|size| (*size, Spread::of((subject.measure)(*size), 1))).collect();
        let curve = Curve { cost: subject.cost, of: subject.of, growth: subject.growth, points };
        curve.print();
        curves.push(curve);
    }
    for file in files {
        std::fs::write(&file, chart::svg(&curves)).unwrap_or_else(|error| panic!("{file}: {error}"));
        println!("\nthe charts are in {file}");
    }
}

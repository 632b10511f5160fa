//! Which calls of one answer have to wait for which.
//!
//! Rule: two calls keep the order they were made in whenever one of them changes what the other touches, and a call that
//! may touch anything keeps its place between all others. Everything else may run at the same time.

use kode_base::call::Touch;
use kode_base::paths::Target;

/// The reach of a call, for its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallReach {
    /// Anything: it runs alone.
    Anything,
    /// These things and nothing else.
    Only(Vec<Touch>),
}

/// For each call, in order, the earlier calls that have to have ended before it begins.
pub(super) fn waits(calls: &[CallReach]) -> Vec<Vec<usize>> {
    let earlier = |later: usize| {
        (0..later).filter(|earlier| must_wait(&calls[*earlier], &calls[later])).collect::<Vec<_>>()
    };
    (0..calls.len()).map(earlier).collect()
}

fn must_wait(earlier: &CallReach, later: &CallReach) -> bool {
    match (earlier, later) {
        (CallReach::Anything, _) | (_, CallReach::Anything) => true,
        (CallReach::Only(earlier), CallReach::Only(later)) => {
            earlier.iter().any(|one| later.iter().any(|other| collide(one, other)))
        }
    }
}

fn collide(one: &Touch, other: &Touch) -> bool {
    match (one, other) {
        (Touch::Write(one), Touch::Write(other) | Touch::Read(other))
        | (Touch::Read(one), Touch::Write(other)) => overlap(one, other),
        // A command is known to do no more than it says only to the gate.
        (Touch::Command { .. } | Touch::Foreign { only_looks: false, .. }, _)
        | (_, Touch::Command { .. } | Touch::Foreign { only_looks: false, .. }) => true,
        (
            Touch::Read(_)
            | Touch::Fetch { .. }
            | Touch::Named { .. }
            | Touch::Foreign { only_looks: true, .. },
            _,
        )
        | (
            Touch::Write(_),
            Touch::Fetch { .. } | Touch::Named { .. } | Touch::Foreign { only_looks: true, .. },
        ) => false,
    }
}

/// Whether one is the other, or a folder that the other lies in.
fn overlap(one: &Target, other: &Target) -> bool {
    match (one, other) {
        (Target::File(one), Target::File(other)) => one.is_within(other) || other.is_within(one),
        // A search of a folder sees documents without a file as well.
        (Target::Untitled(one), Target::Untitled(other)) => one == other,
        (Target::File(_), Target::Untitled(_)) | (Target::Untitled(_), Target::File(_)) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kode_base::paths::AbsPath;

    fn target(path: &str) -> Target {
        Target::File(AbsPath::new(path).unwrap())
    }

    /// `r/a` reads, `w/a` writes, `!` may touch anything, `f` fetches.
    fn order(calls: &str) -> Vec<Vec<usize>> {
        let reach = |call: &str| match call.split_at(1) {
            ("r", path) => CallReach::Only(vec![Touch::Read(target(path))]),
            ("w", path) => CallReach::Only(vec![Touch::Write(target(path))]),
            ("f", _) => CallReach::Only(vec![Touch::Fetch { url: "https://example.com".parse().unwrap() }]),
            _ => CallReach::Anything,
        };
        waits(&calls.split(' ').map(reach).collect::<Vec<_>>())
    }

    fn none(calls: usize) -> Vec<Vec<usize>> {
        vec![Vec::new(); calls]
    }

    #[test]
    fn reads_run_together_and_a_write_keeps_its_place_among_those_of_its_file() {
        assert_eq!(order("r/a r/b r/a"), none(3));
        assert_eq!(order("w/a r/a r/b w/b w/a"), [vec![], vec![0], vec![], vec![2], vec![0, 1]]);
    }

    #[test]
    fn a_search_of_a_folder_waits_for_writes_into_it_and_holds_back_later_ones() {
        assert_eq!(order("w/s/a r/s r/t w/s/b"), [vec![], vec![0], vec![], vec![1]]);
    }

    #[test]
    fn what_may_touch_anything_runs_alone_and_in_its_place() {
        assert_eq!(order("r/a ! r/b ! f"), [vec![], vec![0], vec![1], vec![0, 1, 2], vec![1, 3]]);
    }

    #[test]
    fn the_web_is_no_file() {
        assert_eq!(order("w/a f w/b"), none(3));
    }
}

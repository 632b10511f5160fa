//! How a change reaches a file: proposed first, or applied at once and reviewable. By glob, for all modes.
//!
//! Rule: a delivery never reaches further than the workspace and never past guarded places, and no link leads around a
//! rule; where no rule matches, the mode decides.

use globset::{GlobBuilder, GlobSet};
use serde::{Deserialize, Serialize};

use kode_base::paths::{AbsPath, Target};

/// How a change reaches a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EditDelivery {
    /// The user is shown the change and says which hunks of it are made.
    Propose,
    /// The change is made at once; its hunks wait to be kept or undone. An open document is edited in the editor, a
    /// closed file is written through to the disk.
    Apply,
}

/// A rule as the user writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditDeliveryRule {
    /// Which files: a glob of paths relative to a workspace folder, such as `docs/**` or `*.lock`; one without a slash
    /// matches names in all folders.
    pub glob: String,
    /// How changes reach them.
    pub delivery: EditDelivery,
}

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the delivery rule for `{glob}` is no glob: {reason}")]
pub struct BadRule {
    /// The glob.
    pub glob: String,
    /// Its problems.
    pub reason: String,
}

/// Rules in force, the first that matches decides.
#[derive(Clone, Debug, Default)]
pub struct Deliveries {
    rules: Vec<(EditDeliveryRule, GlobSet)>,
}

impl Deliveries {
    /// Makes rules ready for use.
    ///
    /// # Errors
    /// [`BadRule`], naming the first that is no glob.
    pub fn new(rules: Vec<EditDeliveryRule>) -> Result<Self, BadRule> {
        let ready = rules.into_iter().map(|rule| {
            let pattern = match rule.glob.trim_start_matches("./") {
                name if !name.contains('/') => format!("**/{name}"),
                path => path.trim_start_matches('/').to_owned(),
            };
            let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
            // One glob alone is compiled in a way that panics where it is too large.
            let matcher = glob.and_then(|glob| GlobSet::builder().add(glob).build());
            let matcher = matcher
                .map_err(|error| BadRule { glob: rule.glob.clone(), reason: error.kind().to_string() })?;
            Ok((rule, matcher))
        });
        Ok(Self { rules: ready.collect::<Result<_, _>>()? })
    }

    /// The rules as they were written.
    #[must_use]
    pub fn rules(&self) -> Vec<EditDeliveryRule> {
        self.rules.iter().map(|(rule, _)| rule.clone()).collect()
    }

    /// How a change reaches a target: by its name, and by where that leads, links followed. One that is proposed by
    /// either is proposed, and one that is applied has to be applied by both. `None` where the rules do not say. The
    /// folders are those of the workspace, by name and with links followed.
    #[must_use]
    pub fn reaching(
        &self,
        (named, roots): (&Target, &[AbsPath]),
        (real, real_roots): (&Target, &[AbsPath]),
    ) -> Option<EditDelivery> {
        match (self.of(named, roots), self.of(real, real_roots)) {
            (Some(EditDelivery::Propose), _) | (_, Some(EditDelivery::Propose)) => {
                Some(EditDelivery::Propose)
            }
            (Some(EditDelivery::Apply), Some(EditDelivery::Apply)) => Some(EditDelivery::Apply),
            (Some(EditDelivery::Apply), None) | (None, Some(EditDelivery::Apply) | None) => None,
        }
    }

    /// How a change reaches a target by its name alone; `None` where no rule says.
    #[must_use]
    pub fn of(&self, target: &Target, roots: &[AbsPath]) -> Option<EditDelivery> {
        let relative = match target {
            Target::File(path) => {
                roots.iter().find_map(|root| path.as_path().strip_prefix(root.as_path()).ok())?
            }
            Target::Untitled(uri) => uri.as_ref(),
        };
        self.rules.iter().find(|(_, glob)| glob.is_match(relative)).map(|(rule, _)| rule.delivery)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(glob: &str, delivery: EditDelivery) -> EditDeliveryRule {
        EditDeliveryRule { glob: glob.to_owned(), delivery }
    }

    #[test]
    fn the_first_rule_that_matches_decides_and_only_within_the_workspace() {
        let rules = [
            rule("*.lock", EditDelivery::Propose),
            rule("src/generated/**", EditDelivery::Apply),
            rule("src/**", EditDelivery::Propose),
        ];
        let rules = Deliveries::new(rules.into()).unwrap();
        let roots = [AbsPath::new("/w").unwrap()];
        let of = |path: &str| rules.of(&Target::File(AbsPath::new(path).unwrap()), &roots);
        assert_eq!(of("/w/a/b/Cargo.lock"), Some(EditDelivery::Propose));
        assert_eq!(of("/w/src/generated/x.rs"), Some(EditDelivery::Apply));
        assert_eq!(of("/w/src/x.rs"), Some(EditDelivery::Propose));
        assert_eq!(of("/w/docs/x.md"), None);
        assert_eq!(of("/elsewhere/Cargo.lock"), None);
    }

    #[test]
    fn a_link_is_applied_only_where_its_name_and_its_end_are() {
        let rules = [rule("docs/**", EditDelivery::Apply), rule("*.lock", EditDelivery::Propose)];
        let rules = Deliveries::new(rules.into()).unwrap();
        let (roots, real_roots) = ([AbsPath::new("/link").unwrap()], [AbsPath::new("/w").unwrap()]);
        let file = |path: &str| Target::File(AbsPath::new(path).unwrap());
        let of = |named, real| rules.reaching((&file(named), &roots), (&file(real), &real_roots));
        assert_eq!(of("/link/docs/x", "/w/docs/x"), Some(EditDelivery::Apply));
        for (named, real) in
            [("/link/docs/x", "/w/src/x"), ("/link/src/x", "/w/docs/x"), ("/link/docs/x", "/x")]
        {
            assert_eq!(of(named, real), None, "{named} → {real}");
        }
        for (named, real) in
            [("/link/docs/x", "/w/a.lock"), ("/link/a.lock", "/w/docs/x"), ("/link/a.lock", "/x")]
        {
            assert_eq!(of(named, real), Some(EditDelivery::Propose), "{named} → {real}");
        }
    }

    #[test]
    fn what_is_no_glob_is_named() {
        let error = Deliveries::new(vec![rule("a[", EditDelivery::Apply)]).unwrap_err();
        assert_eq!(error.glob, "a[");
    }
}

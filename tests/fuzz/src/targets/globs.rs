//! Path patterns of permission rules: a pattern, then paths, one a line.
//!
//! Rule: what a pattern allows it also denies when it is among the denials; a rule for exactly one path covers that
//! path and, where it allows, no other.

use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::permission::rules::{
    Behavior, PathBases, PathPattern, PlacedRule, Rule, RuleSet, RuleSource, RuleSubject, SettingsLayer,
};

use crate::input::Input;

/// The most paths of one input, and the most bytes of one.
const MAX_PATHS: usize = 8;
const MAX_PATH: usize = 512;

pub(crate) fn run(bytes: &[u8]) {
    let text = Input::new(bytes).text();
    let mut lines = text.lines();
    let pattern = lines.next().unwrap_or_default();
    let paths = lines.filter(|line| line.len() <= MAX_PATH).take(MAX_PATHS);
    let paths: Vec<AbsPath> = paths.filter_map(|line| AbsPath::new(line).ok()).collect();
    if let Ok((rule, _)) = Rule::parse(&format!("Read({pattern})")) {
        let [allowed, denied] = [Behavior::Allow, Behavior::Deny].map(|behavior| compiled(behavior, &rule));
        for path in &paths {
            let is_allowed = finds(&allowed, Behavior::Allow, path);
            assert!(!is_allowed || finds(&denied, Behavior::Deny, path), "{rule}: {path:?}");
        }
    }
    let Some((first, others)) = paths.split_first() else { return };
    let exact = compiled(Behavior::Allow, &Rule::read(PathPattern::exactly(first)));
    assert!(finds(&exact, Behavior::Allow, first), "{first:?}");
    for other in others.iter().filter(|other| !other.is_within(first)) {
        assert!(!finds(&exact, Behavior::Allow, other), "{first:?} covers {other:?}");
    }
}

fn compiled(behavior: Behavior, rule: &Rule) -> RuleSet {
    let [cwd, home] = ["/w", "/home/me"].map(|path| AbsPath::new(path).expect("an absolute path"));
    let (real, is_case_insensitive) = (|path: &AbsPath| path.clone(), |_: &AbsPath| false);
    let places =
        PathBases { cwd: &cwd, home: Some(&home), real: &real, is_case_insensitive: &is_case_insensitive };
    let source = RuleSource { layer: SettingsLayer::User, file: None, place: None };
    RuleSet::new(vec![PlacedRule { behavior, rule: rule.clone(), source, root: None }], &places).0
}

fn finds(rules: &RuleSet, behavior: Behavior, path: &AbsPath) -> bool {
    let target = Target::File(path.clone());
    rules.find(behavior, &RuleSubject::Read { given: &target, real: &target }).is_some()
}

//! Properties of all rules and all paths.

use proptest::prelude::*;
use proptest::string::string_regex;

use super::*;

/// The joint verdict of deny, ask and allow on a subject; the lower the number, the less is allowed.
fn freedom(rules: &RuleSet, subject: &RuleSubject<'_>) -> u8 {
    let found = |behavior| rules.find(behavior, subject).is_some();
    match (found(Behavior::Deny), found(Behavior::Ask), found(Behavior::Allow)) {
        (true, _, _) => 0,
        (false, true, _) => 1,
        (false, false, false) => 2,
        (false, false, true) => 3,
    }
}

fn path_text() -> impl Strategy<Value = String> {
    string_regex("(/(w|sub|link|real|src|A|a|b\\.c|\\.env|home|me)){1,5}").unwrap()
}

fn rule_text() -> impl Strategy<Value = String> {
    prop_oneof![
        string_regex("(Read|Edit)").unwrap(),
        string_regex("(Read|Edit)\\((//|~/|/|\\./)?(\\*\\*/)?(w|link|a|\\*|b\\.c|\\[ab\\]|\\{a,real\\})(/(sub|a|\\*|\\*\\*|\\.env)){0,3}/?\\)")
            .unwrap(),
    ]
}

fn behavior() -> impl Strategy<Value = Behavior> {
    prop_oneof![Just(Behavior::Deny), Just(Behavior::Ask), Just(Behavior::Allow)]
}

fn some_rules() -> impl Strategy<Value = Vec<(Behavior, String)>> {
    proptest::collection::vec((behavior(), rule_text()), 0..6)
}

fn compiled(of: &[(Behavior, String)]) -> RuleSet {
    rules(&of.iter().map(|(behavior, rule)| (*behavior, rule.as_str())).collect::<Vec<_>>())
}

fn subjects<'a>(given: &'a Target, real: &'a Target) -> [RuleSubject<'a>; 2] {
    [RuleSubject::Read { given, real }, RuleSubject::Write { given, real }]
}

proptest! {
    #[test]
    fn a_rule_that_is_printed_and_read_is_the_same(
        tool in "(Bash|Read|fs_edit|Grep|Task|Agent|Skill|SlashCommand|WebFetch|mcp__a__b|Other|x\\*)",
        inside in "(domain:)?(\\PC|[()\\\\*:/ ]){0,12}",
        is_bare: bool,
    ) {
        let text = if is_bare { tool } else { format!("{tool}({inside})") };
        if let Ok(rule) = text.parse::<Rule>() {
            prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule.clone()), "{} → {}", text, rule);
        }
    }

    #[test]
    fn a_text_that_is_no_rule_says_so_and_nothing_else_happens(text in "(\\PC|[()\\\\*:/{}\\[\\]]){0,40}") {
        if let Err(error) = text.parse::<Rule>() {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn another_deny_or_ask_never_allows_more(
        mut of in some_rules(),
        rule in rule_text(),
        is_deny: bool,
        given in path_text(),
        real in path_text(),
    ) {
        let (given, real) = (file(&given), file(&real));
        let before = compiled(&of);
        of.push((if is_deny { Behavior::Deny } else { Behavior::Ask }, rule));
        let after = compiled(&of);
        for subject in subjects(&given, &real) {
            prop_assert!(freedom(&after, &subject) <= freedom(&before, &subject), "{:?}", subject);
        }
    }

    #[test]
    fn a_link_in_the_chain_never_loosens(of in some_rules(), given in path_text(), real in path_text()) {
        let rules = compiled(&of);
        let (given, real) = (file(&given), file(&real));
        for (through, direct) in subjects(&given, &real).into_iter().zip(subjects(&real, &real)) {
            prop_assert!(freedom(&rules, &through) <= freedom(&rules, &direct));
        }
        for (through, named) in subjects(&given, &real).into_iter().zip(subjects(&given, &given)) {
            prop_assert!(freedom(&rules, &through) <= freedom(&rules, &named));
        }
    }

    #[test]
    fn what_is_in_a_folder_is_no_freer_than_the_rules_on_it(of in some_rules(), path in path_text(), rest in path_text()) {
        let rules = compiled(&of);
        let (folder, inside) = (file(&path), file(&format!("{path}{rest}")));
        for behavior in [Behavior::Deny, Behavior::Ask] {
            for (folder, inside) in subjects(&folder, &folder).into_iter().zip(subjects(&inside, &inside)) {
                // A rule on the contents of a folder also answers for the folder, but not the reverse.
                if rules.find(behavior, &folder).is_some() {
                    prop_assert!(rules.find(behavior, &inside).is_some(), "{:?}", inside);
                }
            }
        }
    }

    #[test]
    fn letter_case_hides_nothing_from_deny(rule in rule_text(), path in path_text()) {
        let rules = compiled(&[(Behavior::Deny, rule)]);
        let (as_is, loud) = (file(&path), file(&path.to_uppercase()));
        for (as_is, loud) in subjects(&as_is, &as_is).into_iter().zip(subjects(&loud, &loud)) {
            prop_assert!(rules.find(Behavior::Deny, &as_is).is_none() || rules.find(Behavior::Deny, &loud).is_some());
        }
    }

    #[test]
    fn the_pattern_of_a_very_path_covers_it(path in "(/[^/\\x00-\\x1f\\x7f-\\x9f]{1,6}){1,4}") {
        let at = AbsPath::new(&path).unwrap();
        for pattern in [PathPattern::exactly(&at), PathPattern::exactly_within(&at, &self::path("/w"))] {
            let rule = Rule::edit(pattern).to_string();
            let rules = rules(&[(Behavior::Allow, rule.as_str())]);
            let target = Target::File(at.clone());
            prop_assert!(rules.find(Behavior::Allow, &RuleSubject::Write { given: &target, real: &target }).is_some(), "{}", rule);
        }
    }
}

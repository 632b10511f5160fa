//! Rules against what calls touch.

mod cases;
mod properties;

use super::*;
use kode_base::command_shell::CommandShell;
use kode_command::CommandPattern;

pub(super) fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

pub(super) fn file(text: &str) -> Target {
    Target::File(path(text))
}

pub(super) fn placed(behavior: Behavior, rule: &str, layer: SettingsLayer) -> PlacedRule {
    let source = RuleSource { layer, file: None, place: None };
    PlacedRule { behavior, rule: rule.parse().unwrap(), source, root: Some(path("/w")) }
}

/// Rules of the project `/w`, seen from `/w/sub`; `/home/me` is home, `/w/link` leads to `/w/real`, and beneath
/// `/loud` letter case does not count.
pub(super) fn compile(rules: Vec<PlacedRule>) -> (RuleSet, Vec<SettingsProblem>) {
    let real = |path: &AbsPath| match path.as_path().strip_prefix("/w/link") {
        Ok(rest) => self::path("/w/real").join(rest),
        Err(_) => path.clone(),
    };
    let is_loud = |path: &AbsPath| path.as_path().starts_with("/loud");
    let (cwd, home) = (path("/w/sub"), path("/home/me"));
    RuleSet::new(
        rules,
        &PathBases { cwd: &cwd, home: Some(&home), real: &real, is_case_insensitive: &is_loud },
    )
}

pub(super) fn rules(of: &[(Behavior, &str)]) -> RuleSet {
    let rules = of.iter().map(|(behavior, rule)| placed(*behavior, rule, SettingsLayer::Project)).collect();
    let (rules, problems) = compile(rules);
    assert_eq!(problems, []);
    rules
}

#[test]
fn the_strongest_layer_is_reported_first() {
    let layers = [SettingsLayer::User, SettingsLayer::Managed, SettingsLayer::Local];
    let rules = layers.map(|layer| placed(Behavior::Deny, "Read(a)", layer)).to_vec();
    let (rules, _) = compile(rules);
    let found = rules.find(Behavior::Deny, &RuleSubject::Read { given: &file("/x/a"), real: &file("/x/a") });
    assert_eq!(found.unwrap().source.layer, SettingsLayer::Managed);
    let order: Vec<_> = rules.iter().map(|rule| rule.source.layer).collect();
    assert_eq!(order, [SettingsLayer::Managed, SettingsLayer::Local, SettingsLayer::User]);
}

#[test]
fn what_cannot_be_allowed_is_left_out_and_reported() {
    let wrong = ["Bash(run_in_background:true)", "Write*", "*", "mcp__*", "mcp__a*__b"];
    let (rules, problems) =
        compile(wrong.map(|rule| placed(Behavior::Allow, rule, SettingsLayer::User)).to_vec());
    assert_eq!((rules.iter().count(), problems.len()), (0, wrong.len()));
    for behavior in [Behavior::Deny, Behavior::Ask] {
        let (_, problems) = compile(wrong.map(|rule| placed(behavior, rule, SettingsLayer::User)).to_vec());
        assert_eq!(problems, []);
    }
}

#[test]
fn without_a_home_folder_rules_on_it_are_reported_as_lost() {
    let rules = Behavior::ALL.map(|behavior| placed(behavior, "Read(~/x)", SettingsLayer::User)).to_vec();
    let cwd = path("/w");
    let places = PathBases { cwd: &cwd, home: None, real: &AbsPath::clone, is_case_insensitive: &|_| false };
    let (rules, problems) = RuleSet::new(rules, &places);
    let severities: Vec<_> = problems.iter().map(|problem| problem.severity).collect();
    assert_eq!(severities, [ProblemSeverity::Error, ProblemSeverity::Error, ProblemSeverity::Warning]);
    assert_eq!(rules.iter().count(), 0);
}

#[test]
fn only_rules_of_the_user_name_private_hosts_and_only_exactly() {
    use SettingsLayer::{CommandLine, Editor, Local, Managed, Plugin, Project, Session, User};
    let layers = [Managed, CommandLine, Session, Editor, Local, Project, User, Plugin];
    let rule = |layer: SettingsLayer| format!("WebFetch(domain:{}.test)", layer.name().replace(' ', "-"));
    let mut rules: Vec<_> = layers.map(|layer| placed(Behavior::Allow, &rule(layer), layer)).to_vec();
    let others = [
        (Behavior::Allow, "WebFetch"),
        (Behavior::Allow, "WebFetch(domain:*)"),
        (Behavior::Allow, "WebFetch(domain:*.below.test)"),
        (Behavior::Ask, "WebFetch(domain:ask.test)"),
        (Behavior::Deny, "WebFetch(domain:deny.test)"),
    ];
    rules.extend(others.map(|(behavior, rule)| placed(behavior, rule, User)));
    let (rules, problems) = compile(rules);
    assert_eq!(problems, []);
    let hosts = ["managed.test", "command-line.test", "editor.test", "local.test", "user.test"];
    assert_eq!(*rules.own_hosts(), hosts.map(str::to_owned));
}

#[test]
fn a_denied_name_takes_tools_from_the_list() {
    for (rule, gone, there) in [
        ("Edit", &["Edit", "MultiEdit", "Write", "NotebookEdit", "fs_write"][..], &["Read", "Bash"][..]),
        ("Read", &["Read", "NotebookRead", "Grep", "Glob", "LS"], &["Edit", "Bash"]),
        ("Write", &["Write"], &["Edit"]),
        ("Agent", &["Task"], &["Bash"]),
        ("Web*", &["WebFetch", "WebSearch"], &["Read"]),
        ("*", &["Read", "Task", "mcp__a__b", "Other"], &[]),
        ("mcp__a", &["mcp__a__b", "mcp__a__c"], &["mcp__ab__c"]),
        ("mcp__a__*", &["mcp__a__b"], &["mcp__b__b"]),
        ("Bash(*)", &[], &["Bash"]),
        ("Read(**)", &[], &["Read"]),
    ] {
        let rules = rules(&[(Behavior::Deny, rule), (Behavior::Allow, "Read"), (Behavior::Ask, "Bash")]);
        for tool in gone {
            assert!(rules.removes(tool).is_some(), "{rule} {tool}");
        }
        for tool in there {
            assert!(rules.removes(tool).is_none(), "{rule} {tool}");
        }
    }
}

#[test]
fn command_rules_are_reported_in_order_with_those_that_cover_all() {
    let rules = rules(&[
        (Behavior::Deny, "Bash(rm -rf:*)"),
        (Behavior::Deny, "*sh"),
        (Behavior::Deny, "Bash"),
        (Behavior::Allow, "Bash(ls)"),
        (Behavior::Deny, "Bash(description:x)"),
    ]);
    let reported: Vec<_> = rules
        .command_patterns(Behavior::Deny, CommandShell::Bash)
        .map(|(commands, rule)| (matches!(commands, Commands::All), rule.rule.to_string()))
        .collect();
    let expected = [(false, "Bash(rm -rf:*)"), (true, "*sh"), (true, "Bash")];
    assert_eq!(reported, expected.map(|(is_all, rule)| (is_all, rule.to_owned())));
}

#[test]
fn a_denial_or_question_for_bash_is_one_for_powershell_and_a_permission_is_not() {
    let of_powershell = |text| Some(CommandPattern::of_powershell(text).unwrap());
    let set = rules(&[
        (Behavior::Deny, "Bash(rm:*)"),
        (Behavior::Deny, "PowerShell(Copy-Item:*)"),
        (Behavior::Ask, "Bash"),
        (Behavior::Allow, "Bash"),
        (Behavior::Allow, "PowerShell(git log:*)"),
    ]);
    let found = |behavior| -> Vec<Option<CommandPattern>> {
        let all = set.command_patterns(behavior, CommandShell::PowerShell);
        all.map(|(commands, _)| match commands {
            Commands::All => None,
            Commands::Pattern(pattern) => Some(pattern.clone()),
        })
        .collect()
    };
    // `rm` is another name of Remove-Item there.
    assert_eq!(found(Behavior::Deny), [of_powershell("rm:*"), of_powershell("Copy-Item:*")]);
    assert_eq!(found(Behavior::Ask), [None]);
    assert_eq!(found(Behavior::Allow), [of_powershell("git log:*")]);
    assert_eq!(set.command_patterns(Behavior::Deny, CommandShell::Bash).count(), 1);
    assert!(rules(&[(Behavior::Deny, "Bash")]).removes("PowerShell").is_some());
    assert!(set.removes("PowerShell").is_none());
}

#[test]
fn where_a_rule_is_from_is_reported_in_words() {
    let place = Some(FileRange { line: 2, column: 4, end_line: 2, end_column: 9 });
    let source =
        RuleSource { layer: SettingsLayer::Project, file: Some(path("/w/.kode/settings.json")), place };
    assert_eq!(source.to_string(), "project settings, /w/.kode/settings.json:3");
    let source = RuleSource { layer: SettingsLayer::CommandLine, file: None, place: None };
    assert_eq!(source.to_string(), "command line");
}

#[test]
fn links_at_the_root_are_judged_as_what_they_lead_to() {
    let real = |path: &AbsPath| {
        let links = ["etc", "var", "tmp"];
        let below = links.iter().find_map(|name| {
            let below = path.as_path().strip_prefix("/").ok().filter(|below| below.starts_with(name))?;
            Some(self::path("/private").join(below))
        });
        below.unwrap_or_else(|| path.clone())
    };
    let cwd = path("/w");
    let places = PathBases { cwd: &cwd, home: None, real: &real, is_case_insensitive: &|_| false };
    let of =
        |behavior, rule: &str| RuleSet::new(vec![placed(behavior, rule, SettingsLayer::User)], &places).0;
    let covers = |rules: &RuleSet, behavior, given: &str| {
        let (given, real) = (path(given), real(&path(given)));
        let (given, real) = (Target::File(given), Target::File(real));
        rules.find(behavior, &RuleSubject::Read { given: &given, real: &real }).is_some()
    };
    for behavior in Behavior::ALL {
        for rule in ["Read(//etc/ssl/**)", "Read(//private/etc/ssl/**)"] {
            let rules = of(behavior, rule);
            for given in ["/etc/ssl/key", "/private/etc/ssl/key"] {
                assert!(covers(&rules, behavior, given), "{behavior:?} {rule}: {given}");
            }
            for given in ["/etc/hosts", "/private/ssl/key", "/ssl/key", "/w/etc/ssl/key", "/usr/etc/ssl/key"]
            {
                assert!(!covers(&rules, behavior, given), "{behavior:?} {rule}: {given}");
            }
        }
        let rules = of(behavior, "Read(//private/data/**)");
        assert!(covers(&rules, behavior, "/private/data/x") && !covers(&rules, behavior, "/data/x"));
    }
}

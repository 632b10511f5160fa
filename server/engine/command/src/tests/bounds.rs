//! Lines past every bound, and folders after `cd`.
//!
//! Rule: past a bound a line is unknown to everyone who would allow it, and hides nothing from who would refuse it.

use super::tables::{at_work, pattern};

fn check_bounded(line: &str) {
    let analysis = at_work(line);
    let is_opaque = analysis.unknowns.iter().any(|unknown| unknown.opaque);
    assert!(analysis.excess.is_some() || is_opaque && pattern("rm:*").forbids(&analysis), "{:.60}", line);
}

#[test]
fn lines_past_a_bound_are_unknown_and_concern_every_refusing_rule() {
    check_bounded(&format!("echo {}", "a".repeat(70_000)));
    check_bounded(&"true;".repeat(10_000));
    check_bounded(&format!("{}ls{}", "(".repeat(1_000), ")".repeat(1_000)));
    check_bounded(&format!("{}ls{}", "{ ".repeat(1_000), "; }".repeat(1_000)));
    check_bounded(&format!("echo {}ls{}", "$(".repeat(1_000), ")".repeat(1_000)));
    check_bounded(&format!("{}ls", "nohup ".repeat(1_000)));
    check_bounded(&"if ".repeat(1_000));
}

#[test]
fn the_floor_holds_past_the_bounds() {
    for line in [
        format!("echo {}; sudo ls", "a".repeat(70_000)),
        format!("{}sudo ls", "true;".repeat(10_000)),
        format!("{}sudo ls{}", "(".repeat(200), ")".repeat(200)),
        format!("{}sudo ls{}", "if ".repeat(200), "; fi".repeat(200)),
        format!("echo {}sudo ls{}", "$(".repeat(20), ")".repeat(20)),
        format!("echo {}sudo ls{}", "$(".repeat(60), ")".repeat(60)),
    ] {
        let analysis = at_work(&line);
        assert!(analysis.excess.is_some() || !analysis.dangers.is_empty(), "{line:.40}");
    }
}

#[test]
fn lines_that_are_too_much_to_be_judged_are_refused_whole() {
    for line in [
        format!("{}ls", "ls && ".repeat(10_000)),
        format!("{}ls", "ls | ".repeat(10_000)),
        "true;".repeat(10_000),
        format!("{}ls{}", "(".repeat(20_000), ")".repeat(20_000)),
        format!("{}ls{}", "if true; then ".repeat(3_000), "; fi".repeat(3_000)),
        format!("echo {}ls{}", "$(".repeat(10_000), ")".repeat(10_000)),
        format!("echo {}", "`ls` ".repeat(5_000)),
        format!("echo {}", "<(ls) ".repeat(5_000)),
        format!("{}x", "cd a; ".repeat(5_000)),
        "x=$y; $x; ".repeat(3_000),
        "[ -f x ] && ".repeat(3_000),
    ] {
        let analysis = at_work(&line);
        let is_opaque = analysis.unknowns.iter().any(|unknown| unknown.opaque);
        assert!(analysis.excess.is_some() || is_opaque, "{line:.40}");
        assert!(analysis.commands.len() <= 1_100 && analysis.unknowns.len() <= 1_100, "{line:.40}");
    }
}

#[test]
fn a_folder_is_known_only_where_every_way_leads_to_it() {
    for (line, folder) in [
        ("cd a && x", Some("/w/a")),
        ("cd a && cd b && x", Some("/w/a/b")),
        ("cd .. && x", Some("/")),
        ("cd /t && x", Some("/t")),
        ("(cd a) && x", Some("/w")),
        ("cd a | ls; x", Some("/w")),
        ("cd a & x", Some("/w")),
        ("{ cd a && x; }", Some("/w/a")),
        ("cd a; x", None),
        ("cd a || x", Some("/w")),
        ("cd a || ls; x", None),
        ("ls || cd a && x", None),
        ("! cd a && x", Some("/w")),
        ("if cd a; then x; fi", None),
        ("for i in 1 2; do x; cd a; done", None),
        ("cd $A && x", None),
        ("cd && x", None),
        ("command cd a && x", None),
        ("time cd a && x", None),
    ] {
        let analysis = at_work(line);
        let command = analysis.commands.iter().find(|command| command.argv[0].text == "x").unwrap();
        let found = command.directory.as_ref().map(ToString::to_string);
        assert_eq!(found.as_deref(), folder, "{line}");
    }
}

#[test]
fn characters_that_crashed_the_grammar_are_read() {
    let line = "*)$X!\u{1144c}\u{de0}&\u{1f574}\u{1003f}u\u{10882}\u{142}\u{a5}\u{1e08f}C'\u{1faa8}\u{1e7e9}<\u{1703}0\u{fffd}&\u{31234}/W|2:3\
                \u{108e3}\u{a5}=-\"\u{11d91}\u{1f74}{\u{d9};/\u{1f1e6}:\u{10b51}/";
    assert!(!at_work(line).unknowns.is_empty());
}

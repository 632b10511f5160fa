//! Properties of any text.
//!
//! Rule: no text makes the reading panic, and no wrapper makes a refusal go away.

use proptest::prelude::*;

use super::tables::{at_work, pattern};
use crate::{CommandPattern, propose};

/// Text made of what shells care about.
fn shellish() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "rm", "ls", " ", " ", ";", "&&", "||", "|", "&", "\n", "(", ")", "{", "}", "$(", "`", "${", "}", "$X", "'", "\"", "\\",
            "<", ">", "<<", "<<EOF", "EOF", "2>&1", "#", "=", "~", "*", "[", "]", "[[", "if", "then", "fi", "for", "do", "done",
            "case", "esac", "in", "$((", "$'", "!", "-c", "sh", "eval", "env", "find", "-exec", "é", "\u{a0}", "\0", "{a,b}", "cd",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..25).prop_map(|pieces| pieces.concat())
}

/// Lines that a shell reads without complaint, some of which run `rm`.
fn sound() -> impl Strategy<Value = String> {
    let command = prop::sample::select(vec![
        "rm x",
        "/bin/rm -r x",
        "ls",
        "echo rm",
        "FOO=1 rm x",
        "sh -c 'rm x'",
        "echo $(rm x)",
        "echo `rm x`",
        "$X y",
        "r''m x",
        "env A=b rm x",
        "find . -exec rm {} +",
        "cat <(rm x)",
        "echo ${x:-$(rm x)}",
        "trap 'rm x' EXIT",
        "eval rm x",
        "ls | xargs rm",
        "if ls; then rm x; fi",
        "for i in a; do rm $i; done",
        "(cd a && rm x)",
        "{ rm x; }",
        "case a in a) rm x;; esac",
        "ls > rm",
        "ls \"$(rm x)\"",
        "ls \"$(cat <<'EOF'\nrm x\nEOF\n)\"",
        "[[ -f rm ]] && rm x",
        "npx rm x",
        "set -e; rm x",
    ]);
    let join = prop::sample::select(vec!["; ", " && ", " || ", " | ", " & ", "\n"]);
    prop::collection::vec((command, join), 1..5).prop_map(|parts| {
        parts.iter().map(|(command, join)| format!("{command}{join}")).collect::<String>() + "ls"
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn patterns_print_as_they_were_read(text in prop_oneof![any::<String>(), shellish()]) {
        if let Ok(pattern) = text.parse::<CommandPattern>() {
            prop_assert_eq!(pattern.to_string(), text);
            prop_assert_eq!(&pattern.to_string().parse::<CommandPattern>().unwrap(), &pattern);
        }
    }

    #[test]
    fn any_text_is_inspected_without_a_panic(line in prop_oneof![any::<String>(), shellish()]) {
        let analysis = at_work(&line);
        for rule in ["rm:*", "ls *", "*", "git * x"] {
            let _ = pattern(rule).forbids(&analysis);
        }
        for rule in propose(&analysis) {
            prop_assert!(analysis.commands.iter().any(|command| rule.allows(command)));
        }
    }

    #[test]
    fn what_is_refused_stays_refused_behind_other_commands_and_wrappers(line in sound()) {
        let rule = pattern("rm:*");
        if rule.forbids(&at_work(&line)) {
            prop_assert!(rule.forbids(&at_work(&format!("true && {line}"))), "true && {:?}", line);
            prop_assert!(rule.forbids(&at_work(&format!("( {line}\n)"))), "( {:?} )", line);
            let script = line.replace('\'', r"'\''");
            prop_assert!(rule.forbids(&at_work(&format!("bash -c '{script}'"))), "bash -c {:?}", line);
        }
    }

    #[test]
    fn no_wrapper_hides_a_plain_command(wrappers in prop::collection::vec(prop::sample::select(vec![
        "timeout 5", "timeout -s KILL 5", "nice", "nice -n 3", "nohup", "stdbuf -oL", "command", "env", "env -i A=b", "A=b", "xargs",
        "xargs -n 1", "setsid", "ionice -c 3", "flock lock", "busybox", "time", "exec", "strace -f", "find . -exec",
        "npx", "uv run", "npm exec --", "fakeroot", "linux64", "bwrap --dev /dev", "runuser -u me --", "PAGER=x",
    ]), 0..6)) {
        let line = format!("{} rm x", wrappers.join(" "));
        prop_assert!(pattern("rm:*").forbids(&at_work(&line)), "{}", line);
    }
}

//! A table of rules and subjects: what matches and what does not. The project is `/w`, the working directory `/w/sub`, home
//! `/home/me`; `/w/link` leads to `/w/real`, and beneath `/loud` letter case does not count.

use serde_json::{Value, json};

use super::*;

const DENY: Behavior = Behavior::Deny;
const ASK: Behavior = Behavior::Ask;
const ALLOW: Behavior = Behavior::Allow;

/// The action in a case.
#[derive(Debug)]
enum Doing {
    /// A path is read.
    Reads(&'static str),
    /// A path is changed.
    Writes(&'static str),
    /// A path is read that leads to another.
    ReadsLink(&'static str, &'static str),
    /// A path is changed that leads to another.
    WritesLink(&'static str, &'static str),
    /// A host is fetched from.
    Fetches(&'static str),
    /// A tool is called with these arguments.
    Calls(&'static str, Value),
    /// An agent, a skill or a command is run.
    Runs(&'static str, &'static str),
}

use Doing::{Calls, Fetches, Reads, ReadsLink, Runs, Writes, WritesLink};

fn is_matched(behavior: Behavior, rule: &str, doing: &Doing) -> bool {
    let rules = rules(&[(behavior, rule)]);
    let found = |subject: RuleSubject<'_>| rules.find(behavior, &subject).is_some();
    match doing {
        Reads(at) => found(RuleSubject::Read { given: &file(at), real: &file(at) }),
        Writes(at) => found(RuleSubject::Write { given: &file(at), real: &file(at) }),
        ReadsLink(given, real) => found(RuleSubject::Read { given: &file(given), real: &file(real) }),
        WritesLink(given, real) => found(RuleSubject::Write { given: &file(given), real: &file(real) }),
        Fetches(host) => found(RuleSubject::Fetch { host }),
        Calls(name, input) => found(RuleSubject::Tool { name, input }),
        Runs(tool, name) => found(RuleSubject::Named { tool, name }),
    }
}

fn check(cases: &[(Behavior, &str, Doing, bool)]) {
    for (behavior, rule, doing, expected) in cases {
        assert_eq!(is_matched(*behavior, rule, doing), *expected, "{} {rule}: {doing:?}", behavior.name());
    }
}

#[test]
fn anchors() {
    check(&[
        (ALLOW, "Read(//etc/hosts)", Reads("/etc/hosts"), true),
        (ALLOW, "Read(//etc/hosts)", Reads("/w/etc/hosts"), false),
        (ALLOW, "Read(//etc)", Reads("/etc/deep/er"), true),
        (ALLOW, "Read(/etc/hosts)", Reads("/etc/hosts"), false),
        (ALLOW, "Read(/etc/hosts)", Reads("/w/etc/hosts"), true),
        (DENY, "Read(/etc/hosts)", Reads("/etc/hosts"), true),
        (DENY, "Read(/etc/hosts)", Reads("/w/etc/hosts"), true),
        (ASK, "Read(/etc/hosts)", Reads("/etc/hosts"), true),
        (DENY, "Read(/etc/hosts)", Reads("/w/sub/etc/hosts"), false),
        (DENY, "Write(/etc/*)", Writes("/etc/passwd"), true),
        (DENY, "Write(/etc/*)", Writes("/etc/ssh/key"), true),
        (DENY, "Write(/etc/*)", Writes("/etc"), false),
        (ALLOW, "Read(~/notes)", Reads("/home/me/notes/a"), true),
        (ALLOW, "Read(~/notes)", Reads("/home/you/notes/a"), false),
        (ALLOW, "Read(~)", Reads("/home/me/x"), true),
        (ALLOW, "Read(~/)", Reads("/home/me"), true),
        (DENY, "Read(~/.ssh/**)", Reads("/home/me/.ssh/id"), true),
        (DENY, "Read(~/.ssh/**)", Reads("/home/me/.ssh"), true),
        (DENY, "Read(~/.ssh/**)", Reads("/home/me/.sshx"), false),
        (ALLOW, "Read(./a)", Reads("/w/sub/a"), true),
        (ALLOW, "Read(./a)", Reads("/w/a"), false),
        (ALLOW, "Read(./a)", Reads("/w/sub/deep/a"), false),
        (DENY, "Read(./a)", Reads("/w/sub/a"), true),
        (DENY, "Read(./a)", Reads("/w/a"), true),
        (DENY, "Read(./a)", Reads("/x/a"), false),
        (ALLOW, "Read(src/a)", Reads("/w/sub/src/a"), true),
        (ALLOW, "Read(src/a)", Reads("/w/src/a"), false),
        (ALLOW, "Read(src/a)", Reads("/w/sub/deep/src/a"), false),
        (DENY, "Read(src/a)", Reads("/w/src/a"), true),
        (DENY, "Read(src/a)", Reads("/x/src/a"), false),
        (ALLOW, "Read(../lib/**)", Reads("/w/lib/a"), true),
        (ALLOW, "Read(../lib/**)", Reads("/w/sub/lib/a"), false),
        (ALLOW, "Read(../../..)", Reads("/anything"), true),
        (ALLOW, "Read(.)", Reads("/w/sub/deep/x"), true),
        (ALLOW, "Read(.)", Reads("/w/x"), false),
        (ALLOW, "Read(/)", Reads("/w/x"), true),
        (ALLOW, "Read(/)", Reads("/x"), false),
        (ALLOW, "Read(//)", Reads("/x"), true),
        (ALLOW, "Read(//)", Reads("/"), true),
    ]);
}

#[test]
fn any_depth() {
    check(&[
        (DENY, "Read(secret.txt)", Reads("/w/sub/secret.txt"), true),
        (DENY, "Read(secret.txt)", Reads("/w/a/b/secret.txt"), true),
        (DENY, "Read(secret.txt)", Reads("/elsewhere/secret.txt"), true),
        (DENY, "Read(secret.txt)", Reads("/w/sub/secret.txt.bak"), false),
        (DENY, "Read(secret.txt)", Reads("/w/sub/secret.txt/inside"), true),
        (ALLOW, "Read(secret.txt)", Reads("/w/sub/a/secret.txt"), true),
        (ALLOW, "Read(secret.txt)", Reads("/w/secret.txt"), false),
        (ALLOW, "Read(secret.txt)", Reads("/elsewhere/secret.txt"), false),
        (DENY, "Read(**/.env)", Reads("/x/y/.env"), true),
        (DENY, "Read(.env*)", Reads("/x/.env.local"), true),
        (DENY, "Read(*.pem)", Reads("/x/a.pem"), true),
        (DENY, "Read(*.pem)", Reads("/x/a.pem.txt"), false),
        (DENY, "Read(*.pem)", Reads("/x/.pem"), true),
        (DENY, "Read(*.tar.gz)", Reads("/x/a.tar.gz"), true),
        (DENY, "Read(?.pem)", Reads("/x/é.pem"), true),
        (DENY, "Read(?.pem)", Reads("/x/ab.pem"), false),
        (DENY, "Read(secrets/)", Reads("/w/a/secrets/x"), true),
        (DENY, "Read(secrets/)", Reads("/w/a/secrets"), true),
        (ALLOW, "Edit(secrets/)", Writes("/w/sub/secrets"), false),
        (ALLOW, "Edit(secrets/)", Writes("/w/sub/secrets/x"), true),
        (ALLOW, "Read(docs/**)", Reads("/w/sub/docs"), true),
        (ALLOW, "Read(docs/**)", Reads("/w/sub/docs/a/b"), true),
        (ALLOW, "Edit(docs/**)", Writes("/w/sub/docs"), false),
        (ALLOW, "Read(**)", Reads("/w/sub/a/b"), true),
        (ALLOW, "Read(**)", Reads("/w/a"), false),
        (DENY, "Read(**)", Reads("/anywhere"), true),
        (DENY, "Read(./**)", Reads("/anywhere"), false),
        (DENY, "Read(./**)", Reads("/w/sub/x"), true),
        (ALLOW, "Read(*)", Reads("/w/sub/a/b"), true),
        (ALLOW, "Read(*)", Reads("/x"), false),
    ]);
}

#[test]
fn wildcards() {
    check(&[
        (ALLOW, "Read(**/*.ts)", Reads("/w/sub/a/b.ts"), true),
        (ALLOW, "Read(**/*.ts)", Reads("/w/sub/b.ts"), true),
        (ALLOW, "Read(**/*.ts)", Reads("/w/sub/b.tsx"), false),
        (ALLOW, "Read(src/*.ts)", Reads("/w/sub/src/b.ts"), true),
        (ALLOW, "Read(src/*.ts)", Reads("/w/sub/src/a/b.ts"), false),
        (ALLOW, "Read(src/**/b.ts)", Reads("/w/sub/src/b.ts"), true),
        (ALLOW, "Read(src/**/b.ts)", Reads("/w/sub/src/x/y/b.ts"), true),
        (ALLOW, "Read(src/**/a/**/b)", Reads("/w/sub/src/a/x/a/b"), true),
        (ALLOW, "Read(src/**/a/**/b)", Reads("/w/sub/src/x/b"), false),
        (ALLOW, "Read(//w/*/a)", Reads("/w/x/a"), true),
        (ALLOW, "Read(//w/*/a)", Reads("/w/x/y/a"), false),
        (ALLOW, "Read(file[0-9])", Reads("/w/sub/file7"), true),
        (ALLOW, "Read(file[!0-9])", Reads("/w/sub/file7"), false),
        (ALLOW, "Read(app/[id]/p)", Reads("/w/sub/app/[id]/p"), false),
        (ALLOW, "Read(app/\\[id\\]/p)", Reads("/w/sub/app/[id]/p"), true),
        (DENY, "Read(app/[id]/p)", Reads("/w/app/[id]/p"), true),
        (DENY, "Read(app/[id]/p)", Reads("/w/app/d/p"), true),
        (ALLOW, "Read({a,b}/x)", Reads("/w/sub/a/x"), true),
        (ALLOW, "Read({a,b}/x)", Reads("/w/sub/b/x"), true),
        (ALLOW, "Read({a,b}/x)", Reads("/w/sub/{a,b}/x"), false),
        (DENY, "Read({a,b}/x)", Reads("/w/{a,b}/x"), true),
        (ALLOW, "Read(*.{ts,js{,x}})", Reads("/w/sub/y.jsx"), true),
        (ALLOW, "Read(*.{ts,js{,x}})", Reads("/w/sub/y.j"), false),
        (ALLOW, "Read({a})", Reads("/w/sub/{a}"), true),
        (ALLOW, "Read(\\*)", Reads("/w/sub/*"), true),
        (ALLOW, "Read(\\*)", Reads("/w/sub/x"), false),
        (ALLOW, "Read(a b/c)", Reads("/w/sub/a b/c"), true),
        (ALLOW, "Read(a(b\\)/c)", Reads("/w/sub/a(b)/c"), true),
        (ALLOW, "Read(a(b)/c)", Reads("/w/sub/a(b)/c"), true),
    ]);
}

#[test]
fn letter_case() {
    check(&[
        (DENY, "Read(.env)", Reads("/w/.ENV"), true),
        (DENY, "Edit(.git/**)", Writes("/w/.GIT/config"), true),
        (ASK, "Edit(//w/Makefile)", Writes("/W/makefile"), true),
        (DENY, "Read([A-Z].key)", Reads("/x/q.KEY"), true),
        (DENY, "Read([!a].key)", Reads("/x/B.key"), true),
        (ALLOW, "Read(a.txt)", Reads("/w/sub/A.txt"), false),
        (ALLOW, "Read(//loud/a.txt)", Reads("/loud/A.TXT"), false),
        (ALLOW, "Read(//w/a)", Reads("/W/a"), false),
    ]);
    let rule = |text| PlacedRule { root: Some(path("/loud")), ..placed(ALLOW, text, SettingsLayer::User) };
    let (rules, _) = compile(vec![rule("Read(/a.txt)")]);
    let reads = |at| rules.find(ALLOW, &RuleSubject::Read { given: &file(at), real: &file(at) }).is_some();
    assert!(reads("/loud/A.TXT") && !reads("/loud/B.TXT"));
}

#[test]
fn links() {
    check(&[
        (DENY, "Read(//w/secret)", ReadsLink("/w/a", "/w/secret"), true),
        (DENY, "Read(//w/a)", ReadsLink("/w/a", "/w/other"), true),
        (ASK, "Edit(//w/secret)", WritesLink("/w/a", "/w/secret"), true),
        (ALLOW, "Read(//w/a)", ReadsLink("/w/a", "/w/secret"), false),
        (ALLOW, "Read(//w/secret)", ReadsLink("/w/a", "/w/secret"), false),
        (ALLOW, "Read(//w)", ReadsLink("/w/a", "/w/secret"), true),
        (ALLOW, "Edit(//w)", WritesLink("/w/a", "/etc/x"), false),
        (ALLOW, "Edit", WritesLink("/w/a", "/etc/x"), true),
        (DENY, "Edit(//w/link/x)", Writes("/w/real/x"), false),
    ]);
    // The folder of the settings is reached through a link.
    let through = |behavior, text| PlacedRule {
        root: Some(path("/w/link")),
        ..placed(behavior, text, SettingsLayer::User)
    };
    for behavior in Behavior::ALL {
        let (rules, _) = compile(vec![through(behavior, "Edit(/a)")]);
        let subject = RuleSubject::Write { given: &file("/w/link/a"), real: &file("/w/real/a") };
        assert!(rules.find(behavior, &subject).is_some(), "{behavior:?}");
    }
    // Each end may be allowed by a rule of its own.
    let rules = rules(&[(ALLOW, "Edit(//w/a)"), (ALLOW, "Edit(//w/b)")]);
    let subject = RuleSubject::Write { given: &file("/w/a"), real: &file("/w/b") };
    assert_eq!(rules.find(ALLOW, &subject).unwrap().rule.to_string(), "Edit(//w/b)");
}

#[test]
fn reading_and_writing() {
    check(&[
        (DENY, "Read(//x)", Writes("/x"), true),
        (ASK, "Read(//x)", Writes("/x"), false),
        (ALLOW, "Read(//x)", Writes("/x"), false),
        (DENY, "Edit(//x)", Reads("/x"), false),
        (ASK, "Edit(//x)", Reads("/x"), false),
        (ALLOW, "Edit(//x)", Reads("/x"), true),
        (DENY, "Read", Writes("/x"), true),
        (DENY, "Edit", Writes("/x"), true),
        (DENY, "Edit", Reads("/x"), false),
        (ALLOW, "Edit", Reads("/x"), false),
        (ALLOW, "Read", Reads("/x"), true),
        (DENY, "Write", Writes("/x"), false),
        (DENY, "MultiEdit(//x)", Writes("/x"), true),
        (DENY, "NotebookEdit(//x)", Writes("/x"), true),
        (DENY, "fs_write(//x)", Writes("/x"), true),
        (DENY, "Grep(//x)", Reads("/x"), true),
        (DENY, "LS(//x)", Reads("/x/y"), true),
        (DENY, "R*", Reads("/x"), true),
        (DENY, "*", Writes("/x"), true),
        (DENY, "Bash", Writes("/x"), false),
    ]);
    let untitled = Target::Untitled("untitled:Untitled-1".to_owned());
    let writes = |rule| {
        rules(&[(ALLOW, rule)])
            .find(ALLOW, &RuleSubject::Write { given: &untitled, real: &untitled })
            .is_some()
    };
    assert!(writes("Edit") && !writes("Edit(**)") && !writes("Edit(//**)"));
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_are_denied_by_what_they_look_like_and_never_allowed() {
    use std::os::unix::ffi::OsStrExt;
    let odd = path("/w/sub").join(std::ffi::OsStr::from_bytes(b"a\xff.pem"));
    let target = Target::File(odd);
    let reads = |behavior, rule| {
        rules(&[(behavior, rule)])
            .find(behavior, &RuleSubject::Read { given: &target, real: &target })
            .is_some()
    };
    assert!(reads(DENY, "Read(*.pem)") && reads(DENY, "Read(a?.pem)") && reads(ALLOW, "Read"));
    assert!(!reads(ALLOW, "Read(*.pem)") && !reads(ALLOW, "Read(a\u{fffd}.pem)"));
}

#[test]
fn hosts() {
    check(&[
        (ALLOW, "WebFetch(domain:example.com)", Fetches("example.com"), true),
        (ALLOW, "WebFetch(domain:example.com)", Fetches("EXAMPLE.com."), true),
        (ALLOW, "WebFetch(domain:Example.Com.)", Fetches("example.com"), true),
        (ALLOW, "WebFetch(domain:example.com)", Fetches("www.example.com"), false),
        (ALLOW, "WebFetch(domain:example.com)", Fetches("example.com.evil.org"), false),
        (ALLOW, "WebFetch(domain:example.com)", Fetches("badexample.com"), false),
        (ALLOW, "WebFetch(domain:*.example.com)", Fetches("www.example.com"), true),
        (ALLOW, "WebFetch(domain:*.example.com)", Fetches("a.b.example.com"), true),
        (ALLOW, "WebFetch(domain:*.example.com)", Fetches("example.com"), false),
        (ALLOW, "WebFetch(domain:*.example.com)", Fetches("badexample.com"), false),
        (ALLOW, "WebFetch(domain:bücher.example)", Fetches("xn--bcher-kva.example"), true),
        (ALLOW, "WebFetch(domain:example.com)", Fetches("example.com\0.evil.org"), false),
        (ALLOW, "WebFetch(domain:example.com)", Fetches("example.com:80"), false),
        (ALLOW, "WebFetch(domain: example.com)", Fetches("example.com"), true),
        (DENY, "WebFetch(domain:127.0.0.1)", Fetches("127.1"), true),
        (DENY, "WebFetch(domain:127.0.0.1)", Fetches("0x7f000001"), true),
        (DENY, "WebFetch(domain:[::1])", Fetches("[0:0::1]"), true),
        (ALLOW, "WebFetch(domain:*)", Fetches("anything.example"), true),
        (ALLOW, "WebFetch", Fetches("anything.example"), true),
        (DENY, "URLFetcher", Fetches("anything.example"), true),
        (DENY, "Web*", Fetches("anything.example"), true),
        (DENY, "WebSearch", Fetches("anything.example"), false),
    ]);
}

#[test]
fn names_of_agents_skills_and_commands() {
    check(&[
        (ALLOW, "Task(Explore)", Runs("Task", "Explore"), true),
        (ALLOW, "Agent(Explore)", Runs("Task", "Explore"), true),
        (ALLOW, "Task(Explore)", Runs("Agent", "Explore"), true),
        (ALLOW, "Task(Explore)", Runs("Task", "Explorer"), false),
        (ALLOW, "Task(Explore)", Runs("Task", "explore"), false),
        (DENY, "Task(Explore)", Runs("Task", "explore"), true),
        (ALLOW, "Task(My Agent)", Runs("Task", "My Agent"), true),
        (ALLOW, "Task(My)", Runs("Task", "My Agent"), false),
        (ALLOW, "Task(*)", Runs("Task", "Any"), true),
        (ALLOW, "Task", Runs("Task", "Any"), true),
        (ALLOW, "Skill(commit)", Runs("Skill", "commit"), true),
        (ALLOW, "Skill(commit)", Runs("Skill", "commit -m x"), false),
        (DENY, "Skill(commit)", Runs("Skill", "commit -m x"), true),
        (ALLOW, "Skill(commit *)", Runs("Skill", "commit -m x"), true),
        (ALLOW, "Skill(commit *)", Runs("Skill", "commit"), true),
        (ALLOW, "Skill(commit *)", Runs("Skill", "commits x"), false),
        (ALLOW, "Skill(plugin:commit)", Runs("Skill", "plugin:commit"), true),
        (ALLOW, "SlashCommand(/test)", Runs("SlashCommand", "/test"), true),
        (ALLOW, "SlashCommand(test)", Runs("SlashCommand", "/test"), true),
        (ALLOW, "SlashCommand:/test", Runs("SlashCommand", "/test"), true),
        (ALLOW, "SlashCommand:/test", Runs("SlashCommand", "/test all"), false),
        (ALLOW, "SlashCommand:/test:*", Runs("SlashCommand", "/test all"), true),
        (ALLOW, "Skill(test)", Runs("SlashCommand", "/test"), false),
        (DENY, "Skill(test)", Runs("SlashCommand", "/test"), true),
        (DENY, "SlashCommand", Runs("Skill", "test"), true),
        (DENY, "Skill", Runs("Task", "test"), false),
    ]);
}

#[test]
fn tools_and_arguments() {
    let none = || json!({});
    check(&[
        (ALLOW, "Edit", Calls("Write", none()), true),
        (ALLOW, "Edit", Calls("fs_multi_edit", none()), true),
        (ALLOW, "Write", Calls("Edit", none()), false),
        (ALLOW, "Write", Calls("Write", none()), true),
        (ALLOW, "Read", Calls("Grep", none()), true),
        (ALLOW, "Read", Calls("Bash", none()), false),
        (ALLOW, "Read(**)", Calls("Read", none()), false),
        (ALLOW, "TodoWrite", Calls("todo_write", none()), true),
        (ALLOW, "WebSearch", Calls("WebSearch", none()), true),
        (DENY, "*", Calls("Anything", none()), true),
        (DENY, "Todo*", Calls("TodoWrite", none()), true),
        (DENY, "Todo*", Calls("MyTodo", none()), false),
        (ALLOW, "mcp__git", Calls("mcp__git__log", none()), true),
        (ALLOW, "mcp__git", Calls("mcp__github__log", none()), false),
        (ALLOW, "mcp__git__*", Calls("mcp__git__log", none()), true),
        (ALLOW, "mcp__git__get_*", Calls("mcp__git__get_log", none()), true),
        (ALLOW, "mcp__git__get_*", Calls("mcp__git__set_log", none()), false),
        (ALLOW, "mcp__git__log", Calls("mcp__git__log", none()), true),
        (ALLOW, "mcp__git__log", Calls("mcp__git__logs", none()), false),
        (ALLOW, "mcp_git_log", Calls("mcp__git__log", none()), true),
        (ALLOW, "git__log", Calls("mcp__git__log", none()), true),
        (DENY, "mcp__*", Calls("mcp__git__log", none()), true),
        (DENY, "mcp__*", Calls("Read", none()), false),
        (DENY, "mcp__*__delete*", Calls("mcp__git__delete_all", none()), true),
        (DENY, "Task(model:opus)", Calls("Task", json!({ "model": "opus" })), true),
        (DENY, "Agent(model:op*)", Calls("Task", json!({ "model": "opus" })), true),
        (DENY, "Task(model:opus)", Calls("Task", json!({ "model": "haiku" })), false),
        (DENY, "Task(model:opus)", Calls("Task", none()), false),
        (ASK, "Bash(run_in_background:true)", Calls("Bash", json!({ "run_in_background": true })), true),
        (ASK, "Bash(run_in_background:true)", Calls("Bash", json!({ "run_in_background": false })), false),
        (
            ASK,
            "Bash(dangerouslyDisableSandbox:*)",
            Calls("Bash", json!({ "dangerouslyDisableSandbox": true })),
            true,
        ),
        (DENY, "Bash(timeout:*)", Calls("Bash", json!({ "timeout": 5 })), false),
        (DENY, "Read(limit:5)", Calls("Read", json!({ "limit": 5 })), true),
        (
            DENY,
            "WebSearch(allowed_domains:evil.example)",
            Calls("WebSearch", json!({ "allowed_domains": ["a", "evil.example"] })),
            true,
        ),
        (DENY, "mcp__db__query(sql:drop *)", Calls("mcp__db__query", json!({ "sql": "drop table x" })), true),
        (DENY, "mcp__db(mode:write)", Calls("mcp__db__query", json!({ "mode": "write" })), true),
        (
            DENY,
            "mcp__db__query(options:x?y)",
            Calls("mcp__db__query", json!({ "options": { "deep": ["x?y"] } })),
            true,
        ),
        (
            DENY,
            "mcp__db__query(options:x?y)",
            Calls("mcp__db__query", json!({ "options": { "deep": ["xzy"] } })),
            false,
        ),
    ]);
}

#[test]
fn what_is_no_rule_says_what_to_write() {
    for (text, reported) in [
        ("", "empty"),
        ("()", "no tool name"),
        ("Read (x)", "right before"),
        ("Read(x", "not closed"),
        ("Read)x", "no `(`"),
        ("Read(x) y", "not closed"),
        ("Read()", "write `Read` alone"),
        ("Bash( )", "write `Bash` alone"),
        ("fs_read()", "write `Read` alone"),
        ("WebSearch(x)", "`WebSearch` alone"),
        ("TodoWrite(x:y)", "`parameter:value`"),
        ("mcp__a__b(x)", "write `mcp__a__b`"),
        ("WebFetch(example.com)", "domain:example.com"),
        ("WebFetch(domain:https://x)", "more than a host"),
        ("read(x)", "did you mean `Read`"),
        ("Fish(ls)", "no tool is called"),
        ("mcp__*(x:y)", "takes nothing"),
        ("Read(~you/x)", "write `~/`"),
        ("Skill(/)", "write `Skill` alone"),
        ("Skill(commit -m x)", "write `Skill(commit *)`"),
    ] {
        let error = text.parse::<Rule>().unwrap_err().to_string();
        assert!(error.contains(reported), "{text}: {error}");
    }
}

#[test]
fn what_is_taken_for_something_else_is_reported() {
    let note = |text: &str| Rule::parse(text).unwrap().1.map(|note| note.to_string()).unwrap_or_default();
    for (text, reported) in [
        ("Write(a)", "treated as `Edit(a)`"),
        ("Grep(a)", "treated as `Read(a)`"),
        ("webfetch", "did you mean `WebFetch`"),
        ("Nothing", "no tool is called `Nothing`"),
        ("WebFech(domain:evil.example)", "no tool is called `WebFech`"),
        ("Bsh(rm:*)", "no tool is called `Bsh`"),
        ("Edit(a)", ""),
        ("fs_write(a)", "treated as `Edit(a)`"),
        ("fs_edit(a)", ""),
        ("mcp__a", ""),
        ("Foo*", ""),
    ] {
        let got = note(text);
        assert!(got.contains(reported) && got.is_empty() == reported.is_empty(), "{text}: {got}");
    }
}

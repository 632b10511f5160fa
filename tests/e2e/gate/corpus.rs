//! Command lines that the tests of five other agents judge, judged by this gate.
//!
//! Rule: the table states for each line what the gate decides and why where it agrees with no peer. A line that every peer
//! named there holds back runs unasked only with a reason.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

/// The fewest lines of the table.
const MIN_LINES: usize = 400;

/// One line of the table.
struct Row<'table> {
    number: usize,
    command: String,
    rules: Value,
    /// The demands of the peers, each with its name before it.
    peers: BTreeSet<(&'table str, &'table str)>,
    decision: &'table str,
    /// The decision without questions, where the table states it.
    bypass: Option<&'table str>,
    reason: Option<&'table str>,
}

impl<'table> Row<'table> {
    fn read(number: usize, line: &'table str) -> Self {
        let columns: Vec<&str> = line.split('\t').collect();
        let [command, rules, peers, decision, bypass, reason] = columns[..] else {
            panic!("line {number} has {} columns", columns.len())
        };
        let given = |text: &'table str| (text != "-").then_some(text);
        let peers = peers.split(' ').map(|peer| peer.split_once('=').unwrap());
        Self {
            number,
            command: unescaped(command),
            rules: rules_of(rules),
            peers: peers.collect(),
            decision,
            bypass: given(bypass),
            reason: given(reason),
        }
    }

    fn demands(&self) -> BTreeSet<&str> {
        self.peers.iter().map(|(_, demand)| *demand).collect()
    }

    fn query(&self, mode: &str) -> String {
        json!({ "tool": "Bash", "input": { "command": self.command }, "mode": mode, "rules": self.rules })
            .to_string()
    }
}

fn unescaped(text: &str) -> String {
    let mut command = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (other, false) => command.push(other),
            (_, true) => match letters.next().unwrap() {
                'n' => command.push('\n'),
                'r' => command.push('\r'),
                't' => command.push('\t'),
                '\\' => command.push('\\'),
                other => command.extend(['\\', other]),
            },
        }
    }
    command
}

fn rules_of(text: &str) -> Value {
    let mut rules = json!({ "allow": [], "ask": [], "deny": [] });
    for rule in text.split("; ").filter(|rule| *rule != "-") {
        let (behavior, pattern) = match rule.split_at(1) {
            ("!", pattern) => ("deny", pattern),
            ("?", pattern) => ("ask", pattern),
            _ => ("allow", rule),
        };
        let rule = if pattern == "*" { "Bash".to_owned() } else { format!("Bash({pattern})") };
        rules[behavior].as_array_mut().unwrap().push(json!(rule));
    }
    rules
}

/// A project with the files that the lines name.
fn project() -> Desk {
    let desk = Desk::new(&Script::default());
    for file in ["Cargo.toml", "Makefile", "package.json", "src/lib.rs", "data/rows.csv", "notes/today.md"] {
        desk.project.write(file, "");
    }
    desk
}

#[test]
fn lines_that_other_agents_test_are_held_back_or_run_as_the_table_says() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/gate/commands.tsv");
    let table = std::fs::read_to_string(table).unwrap();
    let numbered = table.lines().enumerate().map(|(at, line)| (at + 1, line));
    let rows: Vec<Row<'_>> = numbered
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| Row::read(number, line))
        .collect();
    assert!(rows.len() >= MIN_LINES, "{} lines", rows.len());

    let asked: Vec<(&Row<'_>, &str, &str)> = rows
        .iter()
        .flat_map(|row| {
            let bypass = row.bypass.map(|decision| (row, "bypassPermissions", decision));
            std::iter::once((row, "default", row.decision)).chain(bypass)
        })
        .collect();
    let questions: String = asked.iter().map(|(row, mode, _)| row.query(mode) + "\n").collect();
    let output = project().cli(&["permissions", "explain"], &questions);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let answers: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), asked.len());

    let mut wrong = Vec::new();
    for ((row, mode, expected), answer) in asked.iter().zip(&answers) {
        let decision = match answer["decision"].as_str().unwrap() {
            "deny" => "refuse",
            other => other,
        };
        if decision != *expected {
            wrong.push(format!(
                "line {}, {mode}: {decision}, not {expected}: {}",
                row.number, answer["reason"]
            ));
        }
    }
    for row in &rows {
        let demands = row.demands();
        let known = demands.iter().chain([&row.decision]);
        assert!(known.clone().all(|word| ["allow", "ask", "refuse"].contains(word)), "line {}", row.number);
        if demands.contains(row.decision) == row.reason.is_some() {
            wrong.push(format!("line {}: a reason stands where the decision is that of no peer", row.number));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

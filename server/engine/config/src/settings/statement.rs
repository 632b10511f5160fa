//! The statements of each file, key by key, for effective values, their sources, and typos.
//!
//! Rule: it goes by the table of keys and by what the reader made of each value, and decides nothing itself.

use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::common::{Range, Ranged};
use serde_json::Value;

use super::keys::{self, Key, KeyMatch, KeyReach, KeyShape};
use super::read::{FileReader, json};
use kode_permission::rules::{Behavior, FileRange, ProblemSeverity, RuleSource};

/// A value that a file states.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The key.
    pub key: &'static keys::Key,
    /// Its name, where the key holds entries by name.
    pub name: Option<String>,
    /// The value; of a list, one item of it.
    pub value: Value,
    /// Its place.
    pub source: RuleSource,
    /// Its state.
    pub standing: StatementStanding,
}

/// The state of a statement in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementStanding {
    /// It counts, unless something stronger says otherwise.
    InForce,
    /// It waits for the user's approval.
    Waiting,
    /// It does not count; a problem says why, where anybody would wonder.
    Ignored,
}

/// Number of reports before a file was read.
#[derive(Clone, Copy)]
pub(super) struct ReadMark {
    withheld: usize,
    problems: usize,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl FileReader<'_, '_> {
    /// The reports until now.
    pub(super) fn mark(&self) -> ReadMark {
        ReadMark { withheld: self.settings.withheld.len(), problems: self.settings.problems.len() }
    }

    /// Notes what the file states, reports typos and ignored keys. The file was read since `before`.
    pub(super) fn survey(&mut self, object: &Object<'_>, before: ReadMark) {
        self.survey_in("", object, before);
        self.report_other_order();
    }

    fn survey_in(&mut self, within: &str, object: &Object<'_>, before: ReadMark) {
        for property in &object.properties {
            let name = property.name.as_str();
            let path = if within.is_empty() { name.to_owned() } else { format!("{within}.{name}") };
            match keys::find(&path) {
                KeyMatch::Key(key) => self.note(key, property, before),
                KeyMatch::Section => {
                    if let Node::Object(object) = &property.value {
                        self.survey_in(&path, object, before);
                    }
                }
                KeyMatch::Nothing(Some(meant)) => {
                    let message = format!(
                        "There is no setting `{path}`; did you mean `{}`? It is ignored.",
                        meant.path
                    );
                    self.report(ProblemSeverity::Warning, property.name.range(), message);
                }
                // Keys of other programs.
                KeyMatch::Nothing(None) => {}
            }
        }
    }

    fn note(&mut self, key: &'static Key, property: &ObjectProp<'_>, before: ReadMark) {
        if let KeyReach::Ignored(why) = key.reach {
            if !why.is_empty() {
                let message = format!("`{}` does nothing in kode-ls: {why}.", key.path);
                self.report(ProblemSeverity::Information, property.name.range(), message);
            }
            return self.state_value(key, None, &property.value, Some(StatementStanding::Ignored), before);
        }
        let refused =
            (key.reach == KeyReach::Own && self.is_of_workspace()).then_some(StatementStanding::Ignored);
        match (key.shape, &property.value) {
            (KeyShape::Texts | KeyShape::Objects, Node::Array(list)) => {
                for item in &list.elements {
                    self.state_value(key, None, item, refused, before);
                }
            }
            (
                KeyShape::SwitchesByName | KeyShape::TextsByName | KeyShape::ObjectsByName,
                Node::Object(entries),
            ) => {
                for entry in &entries.properties {
                    self.state_value(key, Some(entry.name.as_str()), &entry.value, refused, before);
                }
            }
            (KeyShape::ListsByName, Node::Object(entries)) => {
                for entry in &entries.properties {
                    let Node::Array(list) = &entry.value else { continue };
                    for item in &list.elements {
                        self.state_value(key, Some(entry.name.as_str()), item, refused, before);
                    }
                }
            }
            (_, value) => self.state_value(key, None, value, refused, before),
        }
    }

    fn state_value(
        &mut self,
        key: &'static Key,
        name: Option<&str>,
        node: &Node<'_>,
        standing: Option<StatementStanding>,
        before: ReadMark,
    ) {
        let standing = standing.unwrap_or_else(|| self.standing(key, node.range(), before));
        let (value, source, name) = (json(node), self.source(node.range()), name.map(str::to_owned));
        self.settings.statements.push(Statement { key, name, value, source, standing });
    }

    /// The reader's result for a value.
    fn standing(&self, key: &Key, range: Range, before: ReadMark) -> StatementStanding {
        let place = self.source(range).place;
        let is_here = |found: &RuleSource| found.file.as_ref() == self.origin_file() && found.place == place;
        if self.settings.withheld[before.withheld..].iter().any(|withheld| is_here(&withheld.source)) {
            return StatementStanding::Waiting;
        }
        if Behavior::ALL.iter().any(|behavior| key.path == format!("permissions.{}", behavior.name())) {
            let is_rule = self.settings.rules.iter().any(|rule| is_here(&rule.source));
            return if is_rule { StatementStanding::InForce } else { StatementStanding::Ignored };
        }
        let problems = self.settings.problems[before.problems..].iter();
        let mut bad = problems.filter(|problem| problem.severity != ProblemSeverity::Information);
        let is_within = |problem: FileRange| {
            place.is_some_and(|place| {
                (place.line, place.column) <= (problem.line, problem.column)
                    && (problem.end_line, problem.end_column) <= (place.end_line, place.end_column)
            })
        };
        let is_bad = bad.any(|problem| problem.place.is_some_and(is_within));
        if is_bad { StatementStanding::Ignored } else { StatementStanding::InForce }
    }

    /// Tells where Blade, whose file it is, would let a rule that allows win over one that asks.
    fn report_other_order(&mut self) {
        let is_blade = self.origin_file().and_then(kode_base::paths::AbsPath::parent);
        if is_blade.is_none_or(|folder| folder.file_name() != super::FOREIGN_CONFIG_FOLDER) {
            return;
        }
        let file = self.origin_file().cloned();
        let of_file = |behavior| {
            let all = self.settings.rules.iter().chain(&self.settings.untrusted);
            let file = &file;
            all.filter(move |rule| rule.behavior == behavior && rule.source.file == *file)
        };
        let differing = of_file(Behavior::Ask)
            .filter(|ask| of_file(Behavior::Allow).any(|allow| allow.rule.tool() == ask.rule.tool()))
            .map(|ask| kode_permission::rules::SettingsProblem {
                file: ask.source.file.clone(),
                place: ask.source.place,
                severity: ProblemSeverity::Information,
                message: "In Blade a rule that allows wins over this one; here this one does. \
                          `permissions.order: \"blade\"` in your settings makes it as in Blade."
                    .to_owned(),
            });
        let differing: Vec<_> = differing.collect();
        self.settings.problems.extend(differing);
    }
}

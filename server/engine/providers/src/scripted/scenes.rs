//! Which step of a script answers a request, and what its templates stand for.
//!
//! Rule: which step answers a request follows from the request alone, so any history can be continued by any
//! server with the same script.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use serde_json::Value;

use super::question::RequestView;
use super::script::{ScriptProgram, ScriptStep};

/// The most characters that `{{last_result}}` puts in.
const MAX_RESULT_CHARS: usize = 2_000;

/// The programs of a script, whose patterns have been compiled.
#[derive(Debug)]
pub(super) struct Scenes {
    programs: Vec<(Option<RegexMatcher>, Vec<ScriptStep>)>,
}

/// Where in a script a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScriptPosition {
    /// The program's number.
    pub(super) program: usize,
    /// How many answers the prompt has had.
    pub(super) round: usize,
}

impl Scenes {
    /// Compiles the programs of a script.
    ///
    /// # Errors
    /// Naming the pattern that is no regular expression.
    pub(super) fn new(programs: Vec<ScriptProgram>) -> io::Result<Self> {
        let compile = |pattern: String| {
            RegexMatcher::new(&pattern).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("the pattern `{pattern}`: {error}"))
            })
        };
        let programs = programs
            .into_iter()
            .map(|ScriptProgram { when, steps }| Ok((when.map(compile).transpose()?, steps)));
        Ok(Self { programs: programs.collect::<io::Result<_>>()? })
    }

    /// The step that answers a request, and its position; none beyond the end of the program.
    pub(super) fn find(&self, question: &RequestView<'_>) -> Option<(ScriptPosition, &ScriptStep)> {
        let (prompt, round) = question.prompt();
        let matches = |when: &RegexMatcher| when.is_match(prompt.as_bytes()).unwrap_or(false);
        let chosen = self.programs.iter().position(|(when, _)| when.as_ref().is_some_and(matches));
        let program = chosen.or_else(|| self.programs.iter().position(|(when, _)| when.is_none()))?;
        let mut left = round;
        let step = self.programs[program].1.iter().find(|step| {
            let repeat = step.repeat.max(1);
            let found = left < repeat;
            left = left.saturating_sub(repeat);
            found
        });
        Some((ScriptPosition { program, round }, step?))
    }
}

/// The values of a request's templates.
pub(super) struct Templates {
    values: [(&'static str, String); 4],
}

impl Templates {
    /// The values in a request.
    pub(super) fn new(question: &RequestView<'_>) -> Self {
        let cwd = question.reported("Working directory: ").unwrap_or(".");
        let (_, round) = question.prompt();
        Self {
            values: [
                ("{{cwd}}", cwd.trim().to_owned()),
                ("{{prompt}}", question.words()),
                ("{{last_result}}", question.last_result().chars().take(MAX_RESULT_CHARS).collect()),
                ("{{round}}", round.to_string()),
            ],
        }
    }

    /// `text` with the templates in it filled. Inserted text is not searched again.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            filled.push_str(&rest[..start]);
            rest = &rest[start..];
            let known = self.values.iter().find(|(name, _)| rest.starts_with(name));
            let (name, value) = known.map_or(("{{", "{{"), |(name, value)| (name, value.as_str()));
            filled.push_str(value);
            rest = &rest[name.len()..];
        }
        filled.push_str(rest);
        filled
    }

    /// `value` with the templates in all its strings filled.
    pub(super) fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(key, item)| (key.clone(), self.fill_value(item))).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scripted::{Script, ScriptContent};

    fn say(text: &str) -> ScriptStep {
        ScriptStep { content: vec![ScriptContent::Text { text: text.into() }], ..ScriptStep::default() }
    }

    fn scenes() -> Scenes {
        let program = |when: Option<&str>, texts: &[&str]| ScriptProgram {
            when: when.map(Into::into),
            steps: texts.iter().map(|text| say(text)).collect(),
        };
        let programs = vec![
            program(None, &["default 0"]),
            program(Some("(?i)^fix"), &["fix 0", "fix 1"]),
            program(None, &["never"]),
        ];
        Scenes::new(programs).unwrap()
    }

    fn found(messages: Value) -> Option<String> {
        let scenes = scenes();
        let body = json!({ "messages": messages });
        let (_, step) = scenes.find(&RequestView::messages(&body, 0))?;
        match &step.content[0] {
            ScriptContent::Text { text } => Some(text.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn prompts_choose_the_program_and_answers_the_step() {
        let user = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
        let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "…"}]});
        let result = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "x", "content": "r"},
            {"type": "text", "text": "<system-reminder>not a prompt</system-reminder>\n"},
        ]});
        for (messages, expected) in [
            (json!([user("Fix it")]), Some("fix 0")),
            (json!([user("please fix it")]), Some("default 0")),
            (json!([{"role": "user", "content": "fix as a string"}]), Some("fix 0")),
            (json!([user("fix"), answer, result]), Some("fix 1")),
            (json!([user("fix"), answer, result, answer, result]), None),
            (json!([user("fix"), answer, user("hello")]), Some("default 0")),
            (json!([user("hello"), answer, user("fix"), answer, result]), Some("fix 1")),
            (json!([]), Some("default 0")),
        ] {
            assert_eq!(found(messages.clone()).as_deref(), expected, "{messages}");
        }
    }

    #[test]
    fn templates_are_filled_once_and_everywhere() {
        let request = json!({
            "system": [{"type": "text", "text": "You.\nWorking directory: /w/x \nMore"}],
            "messages": [
                {"role": "user", "content": "say {{cwd}}"},
                {"role": "assistant", "content": []},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "first"}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "y", "content":
                    [{"type": "text", "text": "last"}]}]},
            ],
        });
        let templates = Templates::new(&RequestView::messages(&request, 0));
        assert_eq!(
            templates.fill("{{cwd}}|{{prompt}}|{{last_result}}|{{round}}|{{x}}|{{"),
            "/w/x|say {{cwd}}|last|1|{{x}}|{{"
        );
        let value = json!({"a": ["{{cwd}}/f", 1], "{{cwd}}": null});
        assert_eq!(templates.fill_value(&value), json!({"a": ["/w/x/f", 1], "{{cwd}}": null}));
        let nothing = json!({});
        let templates = Templates::new(&RequestView::messages(&nothing, 0));
        assert_eq!(templates.fill("{{cwd}}{{prompt}}{{last_result}}"), ".");
    }

    #[test]
    fn the_demo_has_an_answer_to_anything() {
        let scenes = Scenes::new(Script::demo().unwrap().programs).unwrap();
        let program = |text: &str| {
            let body = json!({"messages": [{"role": "user", "content": text}]});
            scenes.find(&RequestView::messages(&body, 0)).unwrap().0.program
        };
        assert_ne!(program("Fix the greeting of the demo-project."), program("anything"));
    }

    #[test]
    fn repeated_steps_answer_as_often_as_they_say() {
        let steps = vec![ScriptStep { repeat: 3, ..say("again") }, say("done")];
        let scenes = Scenes::new(vec![ScriptProgram { when: None, steps }]).unwrap();
        let mut messages = vec![json!({"role": "user", "content": "go"})];
        let said: Vec<Option<String>> = (0..5)
            .map(|_| {
                let body = json!({ "messages": messages });
                messages.push(json!({"role": "assistant", "content": "…"}));
                match &scenes.find(&RequestView::messages(&body, 0))?.1.content[0] {
                    ScriptContent::Text { text } => Some(text.clone()),
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        assert_eq!(said.iter().flatten().collect::<Vec<_>>(), ["again", "again", "again", "done"]);
    }
}

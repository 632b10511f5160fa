//! Plays the plans: the model works on a file in which the user types, and the file is saved.
//!
//! Rule: an exercise ends with a text that is compared as a whole, with the typed text and with what the model then reads.

use kode_e2e::distortion::{Distortion, Expected};
use kode_e2e::{Client, Policy, Project, SaveReason, Session, Typing, results_of, text_of};
use serde_json::{Value, json};

use crate::harness::exercise::Exercise;
use crate::harness::plan::{Attempt, EditTool, Meanwhile, Plan};
use crate::harness::user::{BOTTOM, MIDDLE, TOP, TypingUser, with_comments};

/// Characters that the user types at each moment of a call.
const CHARACTERS: usize = 7;

/// The results, over all exercises of a language.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) tools: Vec<EditTool>,
    /// Requests that were carried out at the first try, by distortion.
    pub(super) applied: Vec<Distortion>,
    /// Requests that were refused with the passage, by distortion.
    pub(super) refused: Vec<Distortion>,
    pub(super) typed_characters: usize,
    pub(super) lost_characters: usize,
}

/// The server and the editor of an exercise.
pub(super) struct Table<'a> {
    pub(super) project: &'a Project,
    pub(super) client: &'a Client,
    pub(super) exercise: &'a Exercise,
}

/// A session on one file, and its user.
struct Play<'a> {
    table: &'a Table<'a>,
    session: Session<'a>,
    uri: String,
    user: TypingUser,
    permissions: usize,
    /// Calls of the user's policies so far: each is another moment of typing.
    moments: usize,
}

impl Table<'_> {
    /// Plays an exercise to its end.
    pub(super) fn play(&self, plan: &Plan, tally: &mut Tally) {
        let Self { project, client, exercise } = self;
        let uri = project.uri(&exercise.file());
        let stub = exercise.on_disk(&exercise.stub);
        project.write(&exercise.file(), &stub);
        client.editor.forget();
        client.editor.open(&uri, &stub);
        let session = client.session();
        let user = TypingUser::new(exercise);
        let mut play = Play { table: self, session, uri, user, permissions: 0, moments: 0 };
        for attempt in &plan.attempts {
            play.attempt(attempt, plan.tool, tally);
        }
        play.finish(plan, tally);
        tally.tools.push(plan.tool);
    }
}

impl Play<'_> {
    fn type_all(&self, typings: &[Typing]) {
        typings.iter().for_each(|typing| self.table.client.editor.type_text(&self.uri, typing));
    }

    /// Types the next characters of a comment; gives how many.
    fn type_next(&mut self, place: usize) -> usize {
        let typings = self.user.next(place, CHARACTERS);
        self.type_all(&typings);
        typings.len()
    }

    /// One prompt with its call, and the retry after a refusal.
    fn attempt(&mut self, attempt: &Attempt, tool: EditTool, tally: &mut Tally) {
        let was_changed = self.carry_out(attempt, tool);
        let is_fit = match attempt.expected {
            Expected::Applied => was_changed,
            Expected::Refused => !was_changed,
            Expected::AppliedOrRefused => true,
        };
        let said = last_result(&self.table.project.model.last_request());
        assert!(is_fit, "{}, {:?}: {:?}\n{said}", attempt.prompt, attempt.distortions, attempt.call);
        if was_changed {
            tally.applied.extend(&attempt.distortions);
            return;
        }
        tally.refused.extend(attempt.distortions.iter().filter(|kind| **kind != Distortion::Verbatim));
        let shown = shown_lines(&said);
        let has_passage = attempt.shown.is_empty()
            || shown.windows(attempt.shown.len()).any(|lines| lines == attempt.shown);
        assert!(has_passage, "{}: {:#?} is not in the refusal:\n{said}", attempt.prompt, attempt.shown);
        let retry = attempt.retry.as_ref().unwrap_or_else(|| panic!("{}: {said}", attempt.prompt));
        self.attempt(retry, tool, tally);
    }

    /// Plays one prompt while the user types; gives whether the call has changed the file.
    fn carry_out(&mut self, attempt: &Attempt, tool: EditTool) -> bool {
        // A file that a model writes as a whole has the text it has read, and no more.
        if tool != EditTool::Write {
            self.type_next(TOP);
        }
        let turn = self.session.prompt(&attempt.prompt);
        if let Some(gate) = attempt.gate() {
            self.table.project.model.wait_until_held(&gate);
            match &attempt.meanwhile {
                Meanwhile::Nothing => {}
                Meanwhile::Characters => {
                    self.type_next(TOP);
                }
                Meanwhile::TopComment => {
                    let all = self.user.next(TOP, usize::MAX);
                    self.type_all(&all);
                }
                Meanwhile::Line(typings) => self.type_all(typings),
            }
            // The server handles messages in order: with this answer it has the typed text, and the call meets it.
            self.session.call("agent/session/load", json!({}));
            self.table.project.model.release(&gate);
        }
        if let Some(prompt) = self.session.permission_or_end(&turn, self.permissions) {
            self.permissions += 1;
            self.type_while_edited(&prompt, &turn);
        }
        let done = self.session.wait_done(&turn);
        assert_eq!(done["stopReason"], "end_turn", "{}: {done}", attempt.prompt);
        let call = self.session.calls().pop().unwrap();
        call["state"] == "COMPLETED"
    }

    /// Types while the user is asked, and allows the edit; types when it arrives and while the server carries it out.
    fn type_while_edited(&mut self, prompt: &Value, turn: &str) {
        let editor = &self.table.client.editor;
        self.type_next(MIDDLE);
        let arriving = self.user.next(MIDDLE, CHARACTERS);
        let policies = [Policy::TypeFirst, Policy::TypeInBatch, Policy::TypeThenAnswer, Policy::TypeInWhole];
        editor.next(policies[self.moments % policies.len()](arriving.clone()));
        self.moments += 1;
        let typed = editor.typed().len() + arriving.len();
        self.session.respond(prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
        let typed = typed + self.type_next(BOTTOM);
        self.session.wait_done(turn);
        // The typed text meanwhile makes an edit stale. The editor refuses it, and the policy has had its turn.
        if editor.typed().len() < typed {
            self.type_all(&arriving);
        }
    }

    /// Types the rest, compares the text, and saves the file.
    fn finish(mut self, plan: &Plan, tally: &mut Tally) {
        let rest = self.user.rest();
        self.type_all(&rest);
        let Table { project, client, exercise } = self.table;
        let expected = exercise.on_disk(&with_comments(exercise, &plan.solution, &[TOP, MIDDLE, BOTTOM]));
        let text = client.editor.text(&self.uri);
        tally.typed_characters += client.editor.typed().concat().chars().count();
        tally.lost_characters += lost_characters(exercise, plan, &text);
        assert_eq!(text, expected, "{}", exercise.name);

        self.session.run(&format!("{} look", exercise.name));
        let said = last_result(&project.model.last_request());
        let read = shown_lines(&said);
        assert_eq!(read, text.lines().collect::<Vec<_>>(), "{}: the server has another text", exercise.name);
        client.editor.save(&self.uri, Some(SaveReason::Manual));
        client.editor.close(&self.uri);
    }
}

/// Characters of comments that the text does not have in their order.
fn lost_characters(exercise: &Exercise, plan: &Plan, text: &str) -> usize {
    let lines = [TOP, MIDDLE, BOTTOM].map(|place| crate::harness::user::comment_line(exercise, place));
    let lost = lines
        .iter()
        .chain(&plan.lines)
        .filter(|line| text.lines().filter(|known| known == line).count() != 1);
    lost.map(|line| line.chars().count()).sum()
}

/// The result of a tool that ends a request to the model.
fn last_result(request: &Value) -> String {
    if let Some(messages) = request["messages"].as_array() {
        return results_of(messages.last().unwrap()).pop().unwrap().0;
    }
    let items = request["input"].as_array().unwrap();
    let output =
        items.iter().rev().find(|item| item["type"].as_str().is_some_and(|kind| kind.ends_with("_output")));
    text_of(&output.unwrap()["output"])
}

/// The lines that a result shows behind their numbers.
fn shown_lines(result: &str) -> Vec<&str> {
    let line = |line: &'_ str| -> Option<usize> {
        let (number, text) = line.split_once('\t')?;
        let is_number = !number.is_empty() && number.trim_start().bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| line.len() - text.len())
    };
    result.lines().filter_map(|text| line(text).map(|at| &text[at..])).collect()
}

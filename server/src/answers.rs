//! The answers to a permission prompt, in the order of every client and front end.
//!
//! Rule: Deny comes first, because a stray key selects the first answer. Each later answer grants more than the one before.

use kode_engine::base::mode::Mode;
use kode_engine::permission::{PermissionPrompt, PromptAnswer, Scope};

use crate::display::printable;

/// The label of the answer that denies.
pub(crate) const DENY: &str = "Deny";

/// One answer to a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The label, the same everywhere.
    pub(crate) label: &'static str,
    /// Its grants beyond this call, escaped for display.
    pub(crate) covers: Option<String>,
    /// Whether the call runs.
    pub(crate) allow: bool,
    /// The scope of the permission.
    pub(crate) scope: Scope,
    /// The new mode of the session, if it changes.
    pub(crate) mode: Option<Mode>,
}

impl Choice {
    /// Whether the permission ends with the session. Menus without room for its coverage offer nothing beyond that.
    pub(crate) fn ends_with_session(&self) -> bool {
        matches!(self.scope, Scope::Once | Scope::Session)
    }

    /// The label and the coverage, on one line.
    pub(crate) fn text(&self) -> String {
        match &self.covers {
            Some(covers) => format!("{}: {covers}", self.label),
            None => self.label.to_owned(),
        }
    }

    /// The answer for the session.
    pub(crate) fn answer(&self, by: &str) -> PromptAnswer {
        let (allow, scope, mode) = (self.allow, self.scope, self.mode);
        PromptAnswer { allow, scope, mode, by: by.to_owned(), ..PromptAnswer::default() }
    }
}

/// Returns the answers that a prompt offers.
pub(crate) fn choices(prompt: &PermissionPrompt) -> Vec<Choice> {
    let choice = |label, allow, scope| Choice { label, covers: None, allow, scope, mode: None };
    let standing = |scope, label| {
        let offered = prompt.scopes.contains(&scope);
        let covers = prompt.covers(scope).map(|rules| printable(&rules).replace('\n', "\\n"));
        offered.then(|| Choice { covers, ..choice(label, true, scope) })
    };
    let mut choices = vec![choice(DENY, false, Scope::Once), choice("Allow once", true, Scope::Once)];
    choices.extend(standing(Scope::Session, "Allow for this session"));
    choices.extend(prompt.mode.map(|mode| Choice {
        covers: Some(format!("mode {}", mode.name())),
        mode: Some(mode),
        ..choice("Allow all edits for this session", true, Scope::Once)
    }));
    choices.extend(standing(Scope::Project, "Always allow in this project"));
    choices.extend(standing(Scope::User, "Always allow everywhere"));
    choices
}

#[cfg(test)]
mod tests {
    use kode_engine::base::ids::{CallId, ItemId, PermissionId};
    use kode_engine::permission::{Offer, Preview};

    use super::*;

    #[test]
    fn each_answer_grants_more_than_the_one_before() {
        let offer =
            |scope| Offer { scope, rules: vec!["Edit(/a\nb)".into(), "Edit(/c)".into()], spared: None };
        let mut prompt = PermissionPrompt {
            id: PermissionId::generate(),
            call: CallId::generate(),
            item: ItemId::generate(),
            agent: None,
            tool: "Edit".into(),
            title: "Edit a".into(),
            reason: "test".into(),
            preview: Preview::Diff { paths: vec!["a".into()], unified: String::new() },
            risks: Vec::new(),
            notes: Vec::new(),
            diagnostics: None,
            scopes: vec![Scope::Once],
            offers: Vec::new(),
            mode: None,
            input: serde_json::json!({}),
            timestamp: jiff::Timestamp::now(),
        };
        let texts = |prompt: &PermissionPrompt| choices(prompt).iter().map(Choice::text).collect::<Vec<_>>();
        assert_eq!(texts(&prompt), ["Deny", "Allow once"]);
        prompt.scopes = vec![Scope::Once, Scope::Session, Scope::Project, Scope::User];
        prompt.offers = [Scope::Session, Scope::Project, Scope::User].map(offer).to_vec();
        prompt.mode = Some(Mode::AcceptEdits);
        assert_eq!(
            texts(&prompt),
            [
                "Deny",
                "Allow once",
                r"Allow for this session: Edit(/a\nb), Edit(/c)",
                "Allow all edits for this session: mode acceptEdits",
                r"Always allow in this project: Edit(/a\nb), Edit(/c)",
                r"Always allow everywhere: Edit(/a\nb), Edit(/c)",
            ]
        );
        let answers: Vec<_> = choices(&prompt).iter().map(|choice| choice.answer("test")).collect();
        assert!(!answers[0].allow && answers[1..].iter().all(|answer| answer.allow));
        assert_eq!(answers[3].mode, Some(Mode::AcceptEdits));
        assert_eq!((answers[3].scope, answers[4].scope), (Scope::Once, Scope::Project));
    }
}

//! The command that sets, shows and removes the goal of a session.
//!
//! Rule: a bound that cannot hold is refused when the goal is set.

use serde_json::json;

use super::CommandContext;
use jiff::Timestamp;
use kode_base::ids::TurnId;
use kode_base::mode::Mode;
use kode_base::reminder::reminder;
use kode_config::command::CommandReport;
use kode_config::command::goal::{GoalCommand, GoalRequest, read};
use kode_record::goal::{Goal, GoalBounds, GoalCheck, GoalState};

/// The outcome of the command.
pub(super) enum GoalEffect {
    /// It is answered.
    Answer(CommandReport),
    /// A goal was set; the model begins to work with this text.
    Begin(CommandReport, String),
}

impl CommandContext<'_> {
    /// Carries the command out. A goal is set in `turn` alone: the work begins with it.
    pub(super) fn goal(&self, turn: Option<&TurnId>) -> GoalEffect {
        let goals = &self.session.services.goals;
        let report = match (read(self.arguments), turn) {
            (Err(reason), _) => CommandReport::failure(format!("No goal was set: {reason}.")),
            (Ok(GoalCommand::Show), _) => match goals.now() {
                Some(goal) => CommandReport::text(progress_text(&goal)).with(json!(goal)),
                None => CommandReport::text(
                    "This session has no goal. `/goal TEXT` sets one; `/help goal` has the options.",
                ),
            },
            (Ok(GoalCommand::Clear), _) => match goals.now() {
                Some(_) => {
                    goals.set(None);
                    CommandReport::text("The goal is removed: turns end when the model is done.")
                }
                None => CommandReport::failure("This session has no goal."),
            },
            (Ok(GoalCommand::Set(request)), Some(turn)) => match self.set_goal(request, turn) {
                Ok(effect) => return effect,
                Err(reason) => CommandReport::failure(format!("No goal was set: {reason}.")),
            },
            (Ok(GoalCommand::Set(_)), None) => {
                CommandReport::failure("A goal is set by a prompt of its own, which waits for its turn.")
            }
        };
        GoalEffect::Answer(report)
    }

    fn set_goal(&self, request: GoalRequest, turn: &TurnId) -> Result<GoalEffect, String> {
        let services = &self.session.services;
        if matches!(self.session.mode(), Mode::Plan | Mode::Readonly) {
            return Err("the agent changes nothing in this mode; choose another mode first".to_owned());
        }
        let (spent, name) = {
            let state = services.core.state();
            (state.spending.total().usd, state.config.model.clone())
        };
        let models = services.models.now();
        let profile = models.profile(&name).map_err(|error| error.to_string())?;
        if request.cost_usd.is_some() && profile.prices.is_none() {
            return Err(format!(
                "the prices of the model `{}` are unknown, so `--cost` cannot hold; set `prices` in its profile or bound \
                 the work with `--rounds` and `--minutes`",
                profile.model
            ));
        }
        let GoalRequest { text, check, rounds, cost_usd, minutes } = request;
        let goal = Goal {
            text,
            check: check.map_or(GoalCheck::Model, |command| GoalCheck::Command { command }),
            bounds: GoalBounds { rounds, cost_usd, minutes },
            turn: turn.clone(),
            since: Timestamp::now(),
            cost_before: spent,
            state: GoalState::Active,
            rounds: 0,
            duration_ms: 0,
            cost_usd: 0.0,
            finding: None,
        };
        let report = CommandReport::text(progress_text(&goal)).with(json!(goal));
        let prompt = format!("{}\n\n{}", goal.text, reminder(&instructions(&goal)));
        services.goals.set(Some(goal));
        Ok(GoalEffect::Begin(report, prompt))
    }
}

/// The instructions for the model that works for a goal.
fn instructions(goal: &Goal) -> String {
    let check = match &goal.check {
        GoalCheck::Command { command } => format!("`{command}` is run, and has to end with exit code 0"),
        GoalCheck::Model => {
            "another model reads the conversation, and has to find results of tools that show it".to_owned()
        }
    };
    format!(
        "This is a goal. When you end your work it is checked: {check}. Until then your work continues, at most {} times. \
         Work without asking back where you can decide, and never weaken a check or a test to pass it.",
        goal.bounds.rounds
    )
}

/// The goal and its progress for people.
fn progress_text(goal: &Goal) -> String {
    let check = match &goal.check {
        GoalCheck::Command { command } => format!("`{command}`"),
        GoalCheck::Model => "a model that reads the conversation".to_owned(),
    };
    let state = match goal.state {
        GoalState::Active => "active",
        GoalState::Met => "met",
        GoalState::OutOfRounds => "not met: its checks are used up",
        GoalState::OutOfMoney => "not met: its money is used up",
        GoalState::OutOfTime => "not met: its time is used up",
    };
    let cost = goal.bounds.cost_usd.map_or_else(String::new, |most| format!(" of ${most:.2}"));
    let minutes = goal.bounds.minutes.map_or_else(String::new, |most| format!(" of {most}"));
    let finding = goal.finding.as_deref().and_then(|finding| finding.lines().next());
    let finding = finding.map_or_else(String::new, |line| format!("\n- Newest check: {line}"));
    format!(
        "**Goal:** {}\n\n- State: {state}\n- Check: {check}\n- Checks: {} of {}\n- Money: ${:.2}{cost}\n- Minutes: {}{minutes}{finding}",
        goal.text,
        goal.rounds,
        goal.bounds.rounds,
        goal.cost_usd,
        goal.duration_ms / 60_000
    )
}

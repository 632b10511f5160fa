//! The system prompt as a whole, in several configurations.

use super::*;
use kode_config::memory::{InstructionFolders, Memory};
use kode_config::style::{Style, Styles};

fn compose_in(mode: Mode, agent: Option<&str>, instructions: &Instructions) -> String {
    let root = |path| AbsPath::new(path).unwrap();
    let (cwd, roots) = (root("/w/app"), [root("/w/app"), root("/w/lib")]);
    let facts = SystemFacts {
        cwd: &cwd,
        roots: &roots,
        date: jiff::civil::date(2026, 1, 2),
        branch: instructions.branch.as_deref(),
        overview: &instructions.overview,
        worktree: None,
    };
    let system = format!("System: {} {}", std::env::consts::OS, std::env::consts::ARCH);
    compose(&facts, mode, agent, instructions).text().replace(&system, "System: <system>")
}

/// Instructions of a project with one file.
fn memory() -> Memory {
    let folder = tempfile::tempdir().unwrap();
    let cwd = AbsPath::new(folder.path()).unwrap();
    std::fs::write(cwd.join("AGENTS.md"), "Use tabs.\n").unwrap();
    let places = InstructionFolders {
        roots: vec![cwd.clone()],
        cwd,
        user: vec![],
        managed: None,
        home: None,
        excludes: vec![],
        max_bytes: None,
    };
    Memory::load(&places, &|_| Ok(()))
}

#[test]
fn the_plain_prompt_names_identity_tools_tasks_limits_and_style() {
    insta::assert_snapshot!("plain", compose_in(Mode::Default, None, &Instructions::default()));
}

#[test]
fn everything_comes_in_its_order() {
    let instructions = Instructions {
        memory: memory(),
        style: Styles::default().find("explanatory").unwrap().clone(),
        language: Some("Français".into()),
        appended: Some("Say please.\n".into()),
        branch: Some("main".into()),
        ..Instructions::default()
    };
    insta::assert_snapshot!("everything", compose_in(Mode::AcceptEdits, None, &instructions));
}

#[test]
fn a_style_of_the_user_does_without_the_coding_part() {
    let style = Style { text: "Arr.".into(), keeps_coding: false, name: "Pirate".into(), ..Style::default() };
    let prompt = compose_in(Mode::Default, None, &Instructions { style, ..Instructions::default() });
    assert!(prompt.contains("Arr.") && !prompt.contains("# Coding") && prompt.contains("# Tools"));
}

#[test]
fn a_plan_has_its_own_prompt_with_the_instructions() {
    let instructions = Instructions { memory: memory(), ..Instructions::default() };
    insta::assert_snapshot!("plan", compose_in(Mode::Plan, None, &instructions));
}

#[test]
fn a_sub_agent_has_its_own_prompt_and_the_instructions_and_no_style() {
    let instructions =
        Instructions { memory: memory(), appended: Some("Say please.".into()), ..Instructions::default() };
    insta::assert_snapshot!("agent", compose_in(Mode::Default, Some("You look for bugs."), &instructions));
}

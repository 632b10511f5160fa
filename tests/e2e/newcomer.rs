//! The first tasks of the documentation, typed as they are written, from an empty home folder.
//!
//! Rule: the commands come from the page alone; a test adds only the project and the model, and checks effects.

use std::fs;
use std::path::Path;

use kode_e2e::{Output, Project, Script, binary, call, run_program, say};
use serde_json::json;

use crate::documentation::{blocks, commands, text_of};

const PAGE: &str = "server/docs/first-tasks.md";

/// A user with nothing but an Ollama and a project.
struct Desk {
    project: Project,
}

impl Desk {
    fn new() -> Self {
        let model = json!({ "name": "gemma-test:4b", "model": "gemma-test:4b", "size": 3_338_801_804_u64,
            "details": { "family": "gemma3", "parameter_size": "4.3B", "quantization_level": "Q4_K_M" } });
        let pages = json!({
            "/api/tags": { "models": [model] },
            "/api/show": { "capabilities": ["completion", "tools"], "details": { "family": "gemma3" },
                "model_info": { "gemma3.context_length": 131_072 } },
            "/api/ps": { "models": [] },
        });
        let edit = json!({ "file_path": "{{cwd}}/greeting.py", "old_string": "Helo", "new_string": "Hello" });
        let script = Script::default()
            .when(
                "^fix",
                [
                    call("Read", json!({ "file_path": "{{cwd}}/greeting.py" })),
                    call("Edit", edit),
                    say("Fixed."),
                ],
            )
            .otherwise([say("It greets people.")])
            .quirk("pages", pages);
        let desk = Self { project: Project::new(&script) };
        fs::create_dir_all(desk.project.outside().join("user")).unwrap();
        fs::create_dir_all(desk.project.outside().join("bin")).unwrap();
        std::os::unix::fs::symlink(binary(), desk.project.outside().join("bin/kode-ls")).unwrap();
        desk.project.write("greeting.py", "print(\"Helo\")\n");
        desk
    }

    fn type_line(&self, line: &str) -> Output {
        let outside = self.project.outside();
        let home = outside.join("user");
        let system = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{system}", outside.join("bin").display());
        let ollama = self.project.model.base_url().trim_start_matches("http://");
        let environment = [
            ("HOME", home.to_str().unwrap()),
            ("PATH", &path),
            ("OLLAMA_HOST", ollama),
            ("ANTHROPIC_API_KEY", ""),
            ("ANTHROPIC_BASE_URL", ""),
        ];
        run_program(Path::new("bash"), &["-c", line], Some(&self.project.workspace()), &environment, "")
    }

    /// Types the commands of a task; gives what they print. The program itself is there already.
    fn task(&self, heading: &str) -> String {
        let page = text_of(PAGE);
        let part = page.split("\n## ").find_map(|part| part.strip_prefix(&format!("{heading}\n")));
        let part = part.unwrap_or_else(|| panic!("{PAGE} has no part {heading}"));
        let blocks = blocks(part).into_iter().filter(|(kind, _)| kind == "sh");
        let lines: Vec<String> = blocks.flat_map(|(_, text)| commands(&text)).collect();
        assert!(!lines.is_empty(), "{heading} has no commands");
        let mut shown = String::new();
        for line in lines.iter().filter(|line| !line.starts_with("cargo ")) {
            let output = self.type_line(line);
            assert_eq!(output.code, 0, "{heading}: {line}: {output:?}");
            shown += &output.stdout;
        }
        shown
    }
}

#[test]
fn a_newcomer_does_the_first_tasks_by_their_page_alone() {
    let desk = Desk::new();
    assert!(desk.task("Install").contains("kode-ls "));

    assert!(desk.task("Ask a local model").contains("It greets people."));

    let shown = desk.task("Deny a command in a project");
    assert!(shown.contains("is refused") && shown.contains("Bash(git push:*)"), "{shown}");

    let hook = json!({ "hooks": [{ "type": "command", "command": "echo ran > hook-ran" }] });
    desk.project
        .write(".claude/settings.json", json!({ "hooks": { "UserPromptSubmit": [hook] } }).to_string());
    desk.project.write("CLAUDE.md", "Answer in one sentence.\n");
    desk.type_line("kode-ls run hello");
    assert!(!desk.project.path("hook-ran").exists(), "no hook runs before it is approved");
    desk.task("Use the files of Claude Code");
    desk.type_line("kode-ls run hello");
    assert_eq!(desk.project.read("hook-ran"), "ran\n");
    assert!(desk.project.model.last_request().to_string().contains("Answer in one sentence."));

    let fixed = desk.type_line("kode-ls run --mode acceptEdits 'fix the greeting'");
    assert_eq!(desk.project.read("greeting.py"), "print(\"Hello\")\n", "{fixed:?}");
    desk.project.write("greeting.py", "# mine\nprint(\"Hello\")\n");
    let shown = desk.task("Undo yesterday's session");
    assert!(shown.contains("1. fix the greeting"), "{shown}");
    assert_eq!(desk.project.read("greeting.py"), "# mine\nprint(\"Helo\")\n");
}

//! `kode-ls completions` and `kode-ls man`: shell completions and manual pages.
//!
//! Rule: both are generated from the argument definitions.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, terminal};
use crate::display::printable;

/// The arguments of `kode-ls completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
bash: kode-ls completions bash > ~/.local/share/bash-completion/completions/kode-ls
zsh:  kode-ls completions zsh > \"${fpath[1]}/_kode-ls\"
fish: kode-ls completions fish > ~/.config/fish/completions/kode-ls.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// The arguments of `kode-ls man`.
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Prints a script for a shell.
///
/// # Errors
/// When it cannot be written.
pub(super) fn completions(args: CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "kode-ls", &mut script);
    terminal::output(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes all of them.
///
/// # Errors
/// When they cannot be written.
pub(super) fn man(args: ManArgs) -> anyhow::Result<ExitCode> {
    let Some(folder) = args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        terminal::output(&String::from_utf8(page)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    let shown = printable(&folder.display().to_string());
    std::fs::create_dir_all(&folder).with_context(|| format!("could not make {shown}"))?;
    clap_mangen::generate_to(Cli::command(), &folder)
        .with_context(|| format!("could not write into {shown}"))?;
    terminal::output(&format!("written to {shown}\n"))?;
    Ok(ExitCode::SUCCESS)
}

//! `kode-ls trust`: what files of this workspace ask for, and the user's word on it.
//!
//! Rule: the approved text is printed first, and exactly that text is approved; nothing in the workspace is run or changed.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use kode_engine::base::paths::AbsPath;
use kode_engine::config::extension::live::LoadedExtensions;
use kode_engine::config::extension::places::ExtensionFolders;
use kode_engine::config::policy::PolicySource;
use kode_engine::config::settings::TrustState;

use crate::cli::{FolderArgs, terminal};
use crate::convert;
use crate::display::printable;
use crate::policies;

/// The arguments of `kode-ls trust`.
#[derive(Debug, Args)]
pub struct TrustArgs {
    #[command(subcommand)]
    command: Option<TrustCommand>,

    #[command(flatten)]
    at: FolderArgs,
}

#[derive(Debug, Subcommand)]
enum TrustCommand {
    /// List pending and approved items (the default)
    List,
    /// Show pending items, ask, and approve them: all, or those of one file
    Approve {
        /// The file, as listed
        file: Option<PathBuf>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Revoke approvals: all, or those of one file
    Revoke {
        /// The file, as it is listed
        file: Option<PathBuf>,
    },
}

/// Runs the command.
///
/// # Errors
/// When approvals cannot be read or written, or a file was changed meanwhile.
pub fn run(args: TrustArgs) -> anyhow::Result<ExitCode> {
    let folder = args.at.folder()?;
    // Which models there are has nothing to do with what files ask for.
    let policy = policies::of(&folder)?;
    let plugins = policy.current().declared.plugins_in_use().cloned().collect();
    let files =
        LoadedExtensions::read(&ExtensionFolders::usual(vec![folder.clone()]).with_plugins(plugins), &|_| {
            true
        });
    let policy = policies::of(&folder)?.with_trust_requests(files.trust_requests().cloned().collect());
    let state = policy.trust();
    let (file, approves, is_sure) = match args.command.unwrap_or(TrustCommand::List) {
        TrustCommand::List => {
            let text = if args.at.json {
                format!("{}\n", serde_json::to_string(&convert::rules::trust(state))?)
            } else {
                listed(&state)
            };
            terminal::output(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        TrustCommand::Approve { file, yes } => (file, true, yes),
        TrustCommand::Revoke { file } => (file, false, true),
    };
    let file = file.map(|file| folder.join(file));
    let is_meant = |found: &AbsPath| file.as_ref().is_none_or(|file| file == found);
    let chosen: Vec<(String, String)> = if approves {
        let waiting = state.waiting.iter().filter(|waiting| is_meant(&waiting.trust_request.file));
        waiting
            .map(|one| {
                let shown =
                    format!("{} {}  ({})", one.trust_request.key, one.trust_request.shown(), one.source);
                (one.digest.clone(), shown)
            })
            .collect()
    } else {
        let approved = state.approved.iter().filter(|approved| is_meant(&approved.trust_request.file));
        approved
            .map(|one| {
                (one.digest.clone(), format!("{} {}", one.trust_request.key, one.trust_request.shown()))
            })
            .collect()
    };
    anyhow::ensure!(!chosen.is_empty(), "nothing there {}", if approves { "waits" } else { "was approved" });
    let mut text = String::new();
    for (_, shown) in &chosen {
        let _ = writeln!(text, "{}", printable(shown));
    }
    terminal::output(&text)?;
    if !is_sure {
        anyhow::ensure!(
            terminal::is_interactive(),
            "nothing was approved: `--yes` is required without a terminal"
        );
        let count = chosen.len();
        let what = if count == 1 { "this".to_owned() } else { format!("these {count}") };
        if !terminal::agrees(&format!("Approve {what}?"))? {
            terminal::output("nothing was approved\n")?;
            return Ok(ExitCode::FAILURE);
        }
    }
    let digests: Vec<String> = chosen.into_iter().map(|(digest, _)| digest).collect();
    let done = if approves { policy.approve(&digests)? } else { policy.revoke(&digests)? };
    anyhow::ensure!(
        done == digests.len(),
        "a file changed meanwhile, so only {done} of {} were approved; review it again",
        digests.len()
    );
    terminal::output(&format!("{}: {done}\n", if approves { "approved" } else { "revoked" }))?;
    Ok(ExitCode::SUCCESS)
}

fn listed(state: &TrustState) -> String {
    let mut text = String::new();
    for waiting in &state.waiting {
        let line = format!(
            "waits    {} {}  ({})",
            waiting.trust_request.key,
            waiting.trust_request.shown(),
            waiting.source
        );
        let _ = writeln!(text, "{}", printable(&line));
        if let Some(earlier) = &waiting.earlier {
            let _ = writeln!(text, "         {}", printable(&format!("you approved before: {earlier}")));
        }
    }
    for approved in &state.approved {
        let line = format!(
            "approved {} {}  ({})",
            approved.trust_request.key,
            approved.trust_request.shown(),
            approved.source
        );
        let _ = writeln!(text, "{}", printable(&line));
    }
    if text.is_empty() {
        text.push_str("the files of this workspace ask for nothing\n");
    }
    text
}

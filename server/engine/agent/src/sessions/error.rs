//! Why a session cannot be had.
//!
//! Rule: each names its session or journal, and the process that has it open.

use std::io;
use std::path::PathBuf;

use crate::state::titles::TitleError;
use kode_base::ids::SessionId;
use kode_config::policy::ModeDisabled;
use kode_journal::lease::{LeaseRefusal, SessionWriter, TAKE_OVER_LIMIT};
use kode_model::ModelError;
use kode_process::worktree::WorktreeError;

/// Why a session cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There is no git worktree for it.
    #[error("no session was begun: {0}")]
    Worktree(#[from] WorktreeError),
    /// No session of that id.
    #[error("there is no session `{0}` for this workspace")]
    Unknown(SessionId),
    /// A turn runs in it.
    #[error("a turn runs in the session `{0}`")]
    Running(SessionId),
    /// It cannot be called so.
    #[error(transparent)]
    Title(#[from] TitleError),
    /// A session needs a folder to work in.
    #[error("there is no workspace folder; open one, or name a folder for the session")]
    NoFolder,
    /// Its journal cannot be read or written.
    #[error("the journal {} cannot be used: {source}", path.display())]
    Storage {
        /// The journal.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// Its journal holds no session, or none that can be made out.
    #[error("the journal {} does not add up to a session ({skipped} lines could not be read)", path.display())]
    Corrupted {
        /// The journal.
        path: PathBuf,
        /// Lines that could not be read.
        skipped: u64,
    },
    /// Another process writes it, or the one that did has ended.
    #[error("the session {}", open_in(by.as_deref()))]
    Followed {
        /// Its writer; `None` without one.
        by: Option<Box<SessionWriter>>,
    },
    /// The process that writes it keeps it.
    #[error("the session {}, and stays there: {why}", open_in(by.as_deref()))]
    Declined {
        /// The holder.
        by: Option<Box<SessionWriter>>,
        /// Why.
        why: LeaseRefusal,
    },
    /// The process that writes it does not answer.
    #[error("the session {}, which did not answer within {} s", open_in(by.as_deref()), TAKE_OVER_LIMIT.as_secs())]
    Silent {
        /// The holder.
        by: Option<Box<SessionWriter>>,
    },
    /// The mode is switched off.
    #[error(transparent)]
    Mode(#[from] ModeDisabled),
    /// No such model profile.
    #[error(transparent)]
    Model(#[from] ModelError),
}

fn open_in(by: Option<&SessionWriter>) -> String {
    by.map_or_else(|| "was open in a server that has ended".to_owned(), |by| format!("is open in {by}"))
}

//! The wire types of kode-ls's `agent/*` methods.
//!
//! Rule: every type that crosses the wire is declared here, once, and nothing here has any logic; the JSON Schema and
//! the types of the clients are generated from it. Readers ignore fields and events they do not know.

pub mod negotiation;
pub mod session;
pub mod turn;
pub mod event;
pub mod item;
pub mod permission;
pub mod edits;
pub mod catalogue;
pub mod error;
#[cfg(feature = "codegen")]
pub mod codegen;

/// Version of the protocol; a client with another one is told so by `notNegotiated`.
pub const PROTOCOL_VERSION: u32 = 1;

/// SHA-256 of `generated/schema.json`, in hexadecimal: equal hashes mean equal types.
pub const SCHEMA_HASH: &str = include_str!("../generated/schema.hash").trim_ascii_end();

/// Declares the methods: the marker types for requests and notifications, and the table the schema is made from.
macro_rules! methods {
    (
        requests { $( $(#[$request_doc:meta])* $request:ident = $request_method:literal, $params:ty => $result:ty; )* }
        notifications { $( $(#[$note_doc:meta])* $note:ident = $note_method:literal, $note_params:ty; )* }
    ) => {
        /// The methods, as types for `lsp_types`-style clients and servers.
        pub mod methods {
            $(
                $(#[$request_doc])*
                #[derive(Debug)]
                pub enum $request {}

                impl lsp_types::request::Request for $request {
                    type Params = $params;
                    type Result = $result;
                    const METHOD: &'static str = $request_method;
                }
            )*
            $(
                $(#[$note_doc])*
                #[derive(Debug)]
                pub enum $note {}

                impl lsp_types::notification::Notification for $note {
                    type Params = $note_params;
                    const METHOD: &'static str = $note_method;
                }
            )*
        }

        /// Every request and notification with the schemas of its types, for the generator.
        #[cfg(feature = "codegen")]
        pub(crate) fn register(table: &mut codegen::Table) {
            $( table.request::<$params, $result>($request_method, concat!($(codegen::doc!($request_doc)),*)); )*
            $( table.notification::<$note_params>($note_method, concat!($(codegen::doc!($note_doc)),*)); )*
        }
    };
}

methods! {
    requests {
        /// Begins a session and follows it.
        SessionNew = "agent/session/new", crate::session::NewParams => crate::session::Snapshot;
        /// Lists the sessions of the workspace, newest first.
        SessionList = "agent/session/list", crate::session::ListParams => crate::session::ListResult;
        /// Gives a session as it is now, taking it up from its journal when it is not live.
        SessionLoad = "agent/session/load", crate::session::LoadParams => crate::session::Snapshot;
        /// Ends a live session; its journal stays.
        SessionClose = "agent/session/close", crate::session::CloseParams => ();
        /// Changes mode and model.
        SessionConfigure = "agent/session/configure", crate::session::ConfigureParams => crate::session::Configuration;
        /// Hands in a prompt. Answers at once; everything else is events.
        TurnStart = "agent/turn/start", crate::turn::StartParams => crate::turn::Started;
        /// Cancels the running turn.
        TurnCancel = "agent/turn/cancel", crate::turn::CancelParams => crate::turn::Cancelled;
        /// Cancels one call of the running turn; its siblings go on.
        ToolCancel = "agent/tool/cancel", crate::turn::CancelCallParams => crate::turn::Cancelled;
        /// Answers a permission prompt. The first answer wins.
        PermissionRespond = "agent/permission/respond", crate::permission::RespondParams => ();
        /// Lists the permission prompts that wait.
        PermissionList = "agent/permission/list", crate::permission::ListParams => crate::permission::ListResult;
        /// Lists what the agent has changed in a session, file by file.
        EditsList = "agent/edits/list", crate::edits::ListParams => crate::edits::ListResult;
        /// Lists the tools.
        ToolsList = "agent/tools/list", crate::catalogue::ListParams => crate::catalogue::ToolList;
        /// Lists the model profiles.
        ModelsList = "agent/models/list", crate::catalogue::ListParams => crate::catalogue::ModelList;
    }
    notifications {
        /// Something happened in a session.
        AgentEvent = "agent/event", crate::event::EventParams;
    }
}

/// Declares an id: a string that only the server makes.
macro_rules! ids {
    ($( $(#[$doc:meta])* $name:ident; )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
            #[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
            #[serde(transparent)]
            pub struct $name(pub String);
        )*
    };
}

ids! {
    /// A session.
    SessionId;
    /// A turn: one prompt and all that the agent does about it.
    TurnId;
    /// An item of the transcript.
    ItemId;
    /// A tool call; unique within its session.
    CallId;
    /// A permission prompt.
    PermissionId;
    /// A prompt that waits in a queue.
    QueueId;
}

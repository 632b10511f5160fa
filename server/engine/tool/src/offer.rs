//! The tools, prompts and resources of MCP servers, as the loop and clients list them.
//!
//! Rule: plain data.

use kode_model::Image;

/// A prompt there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptInfo {
    /// The server that has it.
    pub server: String,
    /// Its name at the server.
    pub name: String,
    /// Its typed form: `mcp__server__prompt`.
    pub command: String,
    /// Its purpose.
    pub description: String,
    /// Its arguments, in its order.
    pub arguments: Vec<PromptArgument>,
}

/// The arguments of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub description: String,
    /// Whether it is needed.
    pub required: bool,
}

/// A part of a prompt, as the server has put it together.
#[derive(Clone, Debug, PartialEq)]
pub enum McpPromptPart {
    /// Text.
    Text(String),
    /// A picture.
    Image(Image),
}

/// Contents of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceText {
    /// As text.
    pub text: String,
    /// The pictures in it.
    pub images: Vec<Image>,
}

/// A resource there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceInfo {
    /// The server.
    pub server: String,
    /// Its address; with `{…}` in it where it represents many.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub description: String,
    /// Its type, if the server says.
    pub mime_type: Option<String>,
}

/// A tool of a server, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInfo {
    /// The server.
    pub server: String,
    /// Its canonical name.
    pub name: String,
    /// Its name at the server.
    pub own_name: String,
    /// The text for the model about it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: serde_json::Value,
    /// Whether the server says that it only looks.
    pub read_only_hint: bool,
    /// Whether it says something else of itself than when the server was first used.
    pub changed: bool,
}

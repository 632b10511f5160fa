//! MCP servers that the front matter of an agent file declares.
//!
//! Rule: parsing only; a server of a project file starts after an approval of its text.

use serde_json::{Map, Value};

use crate::extension::head::{FrontMatterFile, line_of};
use crate::extension::problem::FileFault;
use crate::mcp::config::ServerDefinition;
use crate::settings::TrustRequest;
use crate::settings::declared::Declaration;

/// Maximum number of servers that a file can describe.
pub(crate) const MAX_SERVERS: usize = 10;

/// The key they stand under; an approval of one is kept under it and the server's name.
pub(crate) const KEY: &str = "mcpServers";

/// The servers that a file describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileServers {
    at: FrontMatterFile,
    servers: Vec<ServerEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerEntry {
    name: String,
    value: Value,
    /// The line it begins on, from zero.
    line: u32,
}

impl FileServers {
    /// The servers in the `mcpServers` of a front matter, beside the names there, and its problems. `None` where
    /// nothing is described.
    pub(crate) fn read(written: &Value, head: &str, at: &FrontMatterFile) -> (Option<Self>, Vec<FileFault>) {
        let single = |object: &Map<String, Value>| -> Vec<(String, Value)> {
            object.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let described = match written {
            Value::Array(list) => list.iter().filter_map(Value::as_object).flat_map(single).collect(),
            Value::Object(servers) => single(servers),
            _ => Vec::new(),
        };
        let mut faults = Vec::new();
        if described.len() > MAX_SERVERS {
            let message =
                format!("`{KEY}` describes more than {MAX_SERVERS} servers; the others are left out.");
            faults.push(FileFault::warning(message).at_key(head, KEY));
        }
        let mut servers: Vec<ServerEntry> = Vec::new();
        for (name, value) in described.into_iter().take(MAX_SERVERS) {
            let line = line_of(head, KEY, &name);
            // Which variables are set is only known where it is started.
            let any = |_: &str| Some("set".to_owned());
            if let Err(failure) = ServerDefinition::read(&name, &value, &at.root, &any) {
                let message = format!("An MCP server of `{KEY}` is not started: {}.", failure.message);
                faults.push(FileFault { line: Some(line), ..FileFault::warning(message) });
            } else {
                servers.retain(|known| known.name != name);
                servers.push(ServerEntry { name, value, line });
            }
        }
        let file = (!servers.is_empty()).then(|| Self { at: at.clone(), servers });
        (file, faults)
    }

    /// The common name.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|server| server.name.as_str())
    }

    /// The part of it that needs the user's approval. Blocks on the disk.
    pub(crate) fn trust_requests(&self) -> Vec<TrustRequest> {
        self.servers.iter().filter_map(|server| self.at.trust_request(server.key(), &server.value)).collect()
    }

    /// They as settings would declare them. Blocks on the disk.
    pub fn settled(&self, is_approved: &dyn Fn(&TrustRequest) -> bool) -> Vec<Declaration> {
        let entry = |server: &ServerEntry| Declaration {
            name: server.name.clone(),
            value: server.value.clone(),
            source: self.at.source(server.line),
            root: self.at.root.clone(),
            approval: self.at.approval(server.key(), &server.value, is_approved),
            plugin: None,
        };
        self.servers.iter().map(entry).collect()
    }
}

impl ServerEntry {
    fn key(&self) -> String {
        format!("{KEY}.{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::places::ExtensionOrigin;
    use crate::settings::declared::Approval;
    use kode_base::paths::AbsPath;

    fn read(servers: &str, origin: ExtensionOrigin) -> (Option<FileServers>, Vec<FileFault>) {
        let head = format!("name: one\nmcpServers:\n{servers}");
        let root = AbsPath::new("/w").unwrap();
        let at = FrontMatterFile { file: root.join(".claude/agents/one.md"), root, origin };
        let written: Value = serde_saphyr::from_str(&head).unwrap();
        FileServers::read(&written[KEY], &head, &at)
    }

    #[test]
    fn servers_are_described_in_lists_and_in_objects_beside_names() {
        for text in [
            "  - hub\n  - own: { command: x }\n  - far: { url: 'http://h/' }\n",
            "  own: { command: x }\n  far: { url: 'http://h/' }\n",
        ] {
            let (file, faults) = read(text, ExtensionOrigin::User);
            assert_eq!(faults, [], "{text}");
            let file = file.unwrap();
            let mut names: Vec<_> = file.names().collect();
            names.sort_unstable();
            assert_eq!(names, ["far", "own"], "{text}");
            assert!(
                file.settled(&|_| false).iter().all(Declaration::is_in_force),
                "the user's own need no yes"
            );
        }
        assert_eq!(read("  - hub\n", ExtensionOrigin::User), (None, Vec::new()));
    }

    #[test]
    fn one_that_cannot_be_used_is_reported_on_its_line_and_costs_itself_alone() {
        let (file, faults) = read("  - own: { command: x }\n  - bad: { args: [] }\n", ExtensionOrigin::User);
        assert_eq!(file.unwrap().names().collect::<Vec<_>>(), ["own"]);
        assert_eq!((faults.len(), faults[0].line), (1, Some(4)), "{faults:?}");
        assert!(faults[0].message.contains("`bad`"), "{faults:?}");
        let many: String =
            (0..=MAX_SERVERS).map(|number| format!("  - s{number}: {{ command: x }}\n")).collect();
        let (file, faults) = read(&many, ExtensionOrigin::User);
        assert_eq!((file.unwrap().names().count(), faults.len()), (MAX_SERVERS, 1));
    }

    #[test]
    fn a_project_s_server_waits_until_that_very_text_is_approved() {
        let (file, _) = read("  - own: { command: x }\n", ExtensionOrigin::Project);
        let (other, _) = read("  - own: { command: z }\n", ExtensionOrigin::Project);
        let (file, other) = (file.unwrap(), other.unwrap());
        let trust_request = file.trust_requests().remove(0);
        assert_eq!(trust_request.key, "mcpServers.own");
        let approved = |known: &TrustRequest| *known == trust_request;
        assert_eq!(file.settled(&approved)[0].approval, Approval::Approved);
        assert!(!other.settled(&approved)[0].is_in_force());
    }
}

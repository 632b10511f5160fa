//! The floor that the start of kode-ls is measured against: a server of the same LSP crate and runtime that answers
//! `initialize` and does nothing else.
//!
//! Rule: whatever is added here makes kode-ls look better than it is.

use tower_lsp::jsonrpc::Result;
use tower_lsp::lsp_types::{InitializeParams, InitializeResult};
use tower_lsp::{LanguageServer, LspService, Server};

struct Echo;

#[tower_lsp::async_trait]
impl LanguageServer for Echo {
    async fn initialize(&self, _params: InitializeParams) -> Result<InitializeResult> {
        Ok(InitializeResult::default())
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }
}

#[tokio::main]
async fn main() {
    let (service, socket) = LspService::new(|_client| Echo);
    Server::new(tokio::io::stdin(), tokio::io::stdout(), socket).serve(service).await;
}

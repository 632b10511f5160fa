//! The URIs of texts that are neither on the disk nor in the editor: the sides of a file under review.
//!
//! Rule: a virtual URI holds the URI of its document, letter by letter, and reads back to it however often an editor has
//! written it again with other escapes. Its path is that of the document, so that editors find name and language.

use kode_engine::agent::edits::review::ReviewSide;
use lsp_types::Url;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// The scheme of texts without the agent's hunks.
pub const BASELINE_SCHEME: &str = "kode-baseline";

/// The scheme of texts with the proposed hunks.
pub const PROPOSED_SCHEME: &str = "kode-proposed";

/// Characters that a path cannot hold; escaped characters stay.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}');

/// Characters that a query cannot hold, the escapes of the document's own URI among it.
const QUERY: &AsciiSet =
    &PATH.add(b'%').add(b'\'').add(b'&').add(b'+').add(b'=').add(b'\\').add(b'^').add(b'|');

/// A side of a document under review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideUri {
    /// Which side.
    pub side: ReviewSide,
    /// The session; the newest live one with hunks in the document when absent.
    pub session: Option<String>,
    /// The URI of the document.
    pub document: String,
}

impl SideUri {
    /// The virtual URI: `scheme:///path?session;document`, all escapes of the query on top of the document's own. The
    /// document's own URI for the side that is no other text.
    #[must_use]
    pub fn to_uri(&self) -> String {
        let scheme = match self.side {
            ReviewSide::Baseline => BASELINE_SCHEME,
            ReviewSide::Proposed => PROPOSED_SCHEME,
            ReviewSide::Current => return self.document.clone(),
        };
        let document = Url::parse(&self.document).ok();
        let path = document.as_ref().map_or("", |document| document.path().trim_start_matches('/'));
        let query = format!("{};{}", self.session.as_deref().unwrap_or_default(), self.document);
        format!("{scheme}:///{}?{}", utf8_percent_encode(path, PATH), utf8_percent_encode(&query, QUERY))
    }

    /// Reads a virtual URI; `None` for another URI.
    #[must_use]
    pub fn parse(uri: &str) -> Option<Self> {
        let (scheme, rest) = uri.split_once(':')?;
        let side = if scheme.eq_ignore_ascii_case(BASELINE_SCHEME) {
            ReviewSide::Baseline
        } else if scheme.eq_ignore_ascii_case(PROPOSED_SCHEME) {
            ReviewSide::Proposed
        } else {
            return None;
        };
        let query = rest.split_once('?')?.1.split('#').next()?;
        let query = percent_decode_str(query).decode_utf8().ok()?;
        let (session, document) = query.split_once(';')?;
        let session = (!session.is_empty()).then(|| session.to_owned());
        (!document.is_empty()).then(|| Self { side, session, document: document.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use percent_encoding::NON_ALPHANUMERIC;
    use proptest::prelude::*;

    use super::*;

    fn side(session: Option<&str>, document: &str) -> SideUri {
        SideUri {
            side: ReviewSide::Baseline,
            session: session.map(str::to_owned),
            document: document.to_owned(),
        }
    }

    #[test]
    fn the_path_is_the_documents_and_the_query_its_uri() {
        for (side, expected) in [
            (
                side(Some("ses_1"), "file:///w/a%20b.rs"),
                "kode-baseline:///w/a%20b.rs?ses_1;file:///w/a%2520b.rs",
            ),
            (side(None, "file:///c:/w/a.rs"), "kode-baseline:///c:/w/a.rs?;file:///c:/w/a.rs"),
            (side(None, "untitled:Untitled-1"), "kode-baseline:///Untitled-1?;untitled:Untitled-1"),
            (
                side(None, "ssh://host//w/a.rs?x=1#y"),
                "kode-baseline:///w/a.rs?;ssh://host//w/a.rs%3Fx%3D1%23y",
            ),
        ] {
            assert_eq!(side.to_uri(), expected);
        }
        let proposed = SideUri { side: ReviewSide::Proposed, ..side(None, "file:///a") };
        assert_eq!(proposed.to_uri(), "kode-proposed:///a?;file:///a");
    }

    #[test]
    fn other_uris_are_no_sides() {
        for uri in [
            "file:///w/a.rs",
            "kode-baseline",
            "kode-baseline:///w/a.rs",
            "kode-baseline:///w/a.rs?",
            "kode-baseline:///w/a.rs?ses_1;",
            "kode-baseline:///w/a.rs?ses_1",
            "kode-baseline:///w/a.rs?;%FF",
            "kode-baselines:///w/a.rs?;file:///a",
        ] {
            assert_eq!(SideUri::parse(uri), None, "{uri}");
        }
    }

    proptest! {
        #[test]
        fn a_side_is_read_back_whatever_an_editor_did_to_its_escapes(
            document in "(file:///|untitled:|vscode-remote://ssh%2Bh/)[a-z %#?&=;+:@!'()\\[\\]{}|^`<>\"\\\\/ü漢😀.-]{1,20}",
            session in prop::option::of("ses_[0-9a-f]{4}"),
            proposed: bool,
        ) {
            let chosen = if proposed { ReviewSide::Proposed } else { ReviewSide::Baseline };
            let side = SideUri { side: chosen, session, document };
            let uri = side.to_uri();
            prop_assert_eq!(SideUri::parse(&uri), Some(side.clone()));
            prop_assert!(Url::parse(&uri).is_ok(), "{}", uri);
            let normal = Url::parse(&uri).unwrap();
            prop_assert_eq!(SideUri::parse(normal.as_str()), Some(side.clone()));
            // The behavior of an editor that keeps URIs in parts and escapes all it can when it writes them.
            let query = percent_decode_str(normal.query().unwrap()).decode_utf8().unwrap().into_owned();
            let again = format!(
                "{}://{}?{}#1", normal.scheme(), normal.path(), utf8_percent_encode(&query, NON_ALPHANUMERIC)
            );
            prop_assert_eq!(SideUri::parse(&again), Some(side));
        }
    }
}

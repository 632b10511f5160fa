//! A page of the web as text.
//!
//! Rule: plain data.

use url::Url;

/// A page as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebPage {
    /// Where it came from, same-host redirects followed.
    pub url: Url,
    /// Its type as the server gave it, without parameters.
    pub content_type: String,
    /// Its title, if it is HTML and has one.
    pub title: Option<String>,
    /// Its text: Markdown if it is HTML, else as it is.
    pub text: String,
    /// Whether the page continues after the text.
    pub is_cut: bool,
}

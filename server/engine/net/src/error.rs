//! The errors between a URL and its text.
//!
//! Rule: an error says what happened and where; the caller knows the next step.

use std::time::Duration;

/// Why a page could not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// Not a URL.
    #[error("this is not a URL that can be fetched: {reason}")]
    Url {
        /// Its problems.
        reason: String,
    },
    /// Neither `http` nor `https`.
    #[error("`{scheme}` URLs are not fetched, only http and https")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// A user name or password in the URL.
    #[error("the URL holds a user name or password; these are never sent")]
    Credentials,
    /// The host is, or has only, addresses that are not public.
    #[error("`{host}` leads to an address that is not public")]
    Private {
        /// The host.
        host: String,
    },
    /// No connection, or a broken one.
    #[error("{host} could not be reached: {reason}")]
    Unreachable {
        /// The host.
        host: String,
        /// The error of the system.
        reason: String,
    },
    /// The server says no.
    #[error("the server answered {status}")]
    Status {
        /// The number of the status.
        code: u16,
        /// Number and name.
        status: String,
    },
    /// A redirect that leads nowhere.
    #[error("the server redirects, but not to a web page: {reason}")]
    BadRedirect {
        /// Its problems.
        reason: String,
    },
    /// A chain of redirects that did not end.
    #[error("more than {limit} redirects, the last one to {next}")]
    TooManyRedirects {
        /// How many were followed.
        limit: usize,
        /// Where the next one leads.
        next: String,
    },
    /// Not text.
    #[error("the page is not text but {content_type}, {size}")]
    NotText {
        /// The type, as the server gives it.
        content_type: String,
        /// How large, for people.
        size: String,
    },
    /// The conversion to text broke off.
    #[error("the page could not be turned into text: {reason}")]
    Unreadable {
        /// The event.
        reason: String,
    },
    /// It took too long.
    #[error("the page did not arrive within {} seconds", .limit.as_secs())]
    TimedOut {
        /// How long it was waited for.
        limit: Duration,
    },
    /// It was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
    /// No client can be set up.
    #[error("the HTTP client could not be set up: {reason}")]
    Setup {
        /// The error of the system.
        reason: String,
    },
}

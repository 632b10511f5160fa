//! Pages in the network that the user is asked to open in a browser, and the report that the user has finished there.
//!
//! Rule: an address is one of `http` or `https`, and people see all of it as it was sent, with every character that steers or
//! hides text written as an escape. The host beside it is the one that a browser asks. No address is stored.

use tokio::sync::watch;
use url::Url;

/// The longest address in bytes. Longer ones are refused, because a user could not read them.
const MAX_ADDRESS: usize = 2_048;

/// A page that the user is asked to open.
#[derive(Clone, Debug, PartialEq)]
pub struct PageOffer {
    /// The address that is opened.
    pub address: String,
    /// The address for people.
    pub shown: String,
    /// The host that a browser asks; names in other scripts are in the form of the network.
    pub host: String,
    /// The report of the page's end.
    pub completion: PageCompletion,
}

/// Tells when a page is done.
#[derive(Clone, Debug)]
pub struct PageCompletion(watch::Receiver<bool>);

/// The other end of a [`PageCompletion`].
#[derive(Debug)]
pub struct PageReporter(watch::Sender<bool>);

impl PageCompletion {
    /// A completion, and the reporter of it.
    #[must_use]
    pub fn new() -> (PageReporter, Self) {
        let (sender, receiver) = watch::channel(false);
        (PageReporter(sender), Self(receiver))
    }

    /// Waits for the report, or until the reporter is dropped. Answers whether the report came.
    pub async fn reported(&mut self) -> bool {
        self.0.wait_for(|is_done| *is_done).await.is_ok()
    }
}

impl Default for PageCompletion {
    /// A completion without a reporter.
    fn default() -> Self {
        Self::new().1
    }
}

/// Offers of the same page are equal, also with different reporters.
impl PartialEq for PageCompletion {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl PageReporter {
    /// Reports that the page is done.
    pub fn report(&self) {
        self.0.send_replace(true);
    }
}

impl PageOffer {
    /// The offer of an address as it was sent.
    ///
    /// # Errors
    /// Why the user cannot be asked to open it.
    pub fn of(sent: &str, completion: PageCompletion) -> Result<Self, String> {
        if sent.len() > MAX_ADDRESS {
            return Err(format!("its address has {} bytes, and the limit is {MAX_ADDRESS}", sent.len()));
        }
        let url = Url::parse(sent).map_err(|error| format!("its address cannot be read: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "its address begins with `{}:`; only http and https are opened",
                url.scheme()
            ));
        }
        let host = url.host_str().ok_or("its address names no host")?.to_owned();
        Ok(Self { address: url.to_string(), shown: visible(sent), host, completion })
    }
}

/// An address with all characters escaped that are neither letters nor printable ASCII.
fn visible(sent: &str) -> String {
    let mut shown = String::with_capacity(sent.len());
    for char in sent.chars() {
        match char.is_ascii_graphic() || char.is_alphanumeric() {
            true => shown.push(char),
            false => shown.extend(char.escape_unicode()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(sent: &str) -> Result<PageOffer, String> {
        PageOffer::of(sent, PageCompletion::default())
    }

    #[test]
    fn an_address_is_shown_as_it_was_sent_beside_the_host_that_is_asked() {
        for (sent, shown, host) in [
            ("https://a.example/x?y=1#z", "https://a.example/x?y=1#z", "a.example"),
            ("https://bank.example@evil.example/", "https://bank.example@evil.example/", "evil.example"),
            ("https://xn--pple-43d.com/", "https://xn--pple-43d.com/", "xn--pple-43d.com"),
            ("https://\u{430}pple.com/", "https://\u{430}pple.com/", "xn--pple-43d.com"),
            ("https://a.example/\nHost: b", "https://a.example/\\u{a}Host:\\u{20}b", "a.example"),
            ("https://a.example/\u{202e}x\u{200b}", "https://a.example/\\u{202e}x\\u{200b}", "a.example"),
            ("http:\\\\a.example\\@b.example", "http:\\\\a.example\\@b.example", "a.example"),
        ] {
            let offer = offer(sent).unwrap();
            assert_eq!((offer.shown.as_str(), offer.host.as_str()), (shown, host));
            assert!(offer.address.bytes().all(|byte| byte.is_ascii_graphic()), "{}", offer.address);
        }
    }

    #[test]
    fn only_readable_addresses_of_the_web_are_offered() {
        for sent in ["", "a.example", "file:///etc/passwd", "javascript:alert(1)", "vscode://x/y", "https://"]
        {
            assert!(offer(sent).is_err(), "{sent}");
        }
        let long = |length: usize| format!("https://a.example/{}", "x".repeat(length));
        assert!(offer(&long(2_000)).is_ok());
        assert!(offer(&long(MAX_ADDRESS)).unwrap_err().contains("the limit is 2048"));
    }

    #[tokio::test]
    async fn a_report_is_heard_and_none_comes_without_its_reporter() {
        let (reporter, mut completion) = PageCompletion::new();
        reporter.report();
        assert!(completion.reported().await);
        let (reporter, mut completion) = PageCompletion::new();
        drop(reporter);
        assert!(!completion.reported().await);
    }
}

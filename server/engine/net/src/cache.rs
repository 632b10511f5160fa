//! Pages that were fetched a short while ago.
//!
//! Rule: nothing is served past [`LIFETIME`], and neither the number of pages nor their size grows past a bound.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use url::Url;

use crate::WebPage;

/// How long a page is served without asking again.
pub(super) const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// The most pages.
const MAX_PAGES: usize = 50;
/// The most bytes of all pages together.
const MAX_BYTES: usize = 20 << 20;

/// The pages, oldest first.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pages: VecDeque<CachedPage>,
}

#[derive(Debug)]
struct CachedPage {
    url: Url,
    fetched: Instant,
    page: Arc<WebPage>,
}

impl Cache {
    /// The page of a URL, unless it is too old.
    pub(super) fn get(&mut self, url: &Url, now: Instant) -> Option<Arc<WebPage>> {
        self.pages.retain(|entry| now.saturating_duration_since(entry.fetched) < LIFETIME);
        self.pages.iter().find(|entry| entry.url == *url).map(|entry| Arc::clone(&entry.page))
    }

    /// Keeps a page; older ones make room.
    pub(super) fn put(&mut self, url: Url, page: Arc<WebPage>, now: Instant) {
        self.pages.retain(|entry| entry.url != url);
        self.pages.push_back(CachedPage { url, fetched: now, page });
        while self.pages.len() > MAX_PAGES || self.bytes() > MAX_BYTES {
            self.pages.pop_front();
        }
    }

    fn bytes(&self) -> usize {
        self.pages.iter().map(|entry| entry.page.text.len() + entry.url.as_str().len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(number: usize) -> Url {
        Url::parse(&format!("https://example.com/{number}")).unwrap()
    }

    fn page(bytes: usize) -> Arc<WebPage> {
        Arc::new(WebPage {
            url: url(0),
            content_type: "text/plain".to_owned(),
            title: None,
            text: "x".repeat(bytes),
            is_cut: false,
        })
    }

    #[test]
    fn pages_are_served_until_they_are_too_old() {
        let (mut cache, start) = (Cache::default(), Instant::now());
        cache.put(url(1), page(1), start);
        assert!(cache.get(&url(1), start + LIFETIME - Duration::from_secs(1)).is_some());
        assert!(cache.get(&url(2), start).is_none());
        assert!(cache.get(&url(1), start + LIFETIME).is_none());
        assert_eq!(cache.pages.len(), 0);
    }

    #[test]
    fn the_oldest_make_room_when_there_are_too_many_or_they_are_too_large() {
        let (mut cache, start) = (Cache::default(), Instant::now());
        for number in 0..=MAX_PAGES {
            cache.put(url(number), page(1), start);
        }
        assert!(cache.get(&url(0), start).is_none() && cache.get(&url(1), start).is_some());
        cache.put(url(100), page(MAX_BYTES / 2), start);
        cache.put(url(101), page(MAX_BYTES / 2), start);
        assert_eq!(cache.pages.len(), 1);
        cache.put(url(102), page(MAX_BYTES + 1), start);
        assert_eq!(cache.pages.len(), 0);
    }
}

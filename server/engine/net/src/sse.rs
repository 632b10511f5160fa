//! Server-sent events, read from bytes as they arrive.
//!
//! Rule: the events do not depend on where the bytes were split, be it inside a character, a line ending or the
//! byte order mark; an event cut off by the end of the stream is dropped; no event grows past [`MAX_EVENT_BYTES`].

/// The most bytes the lines of one event may have.
pub const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The event's name; empty when the stream gave none.
    pub event: String,
    /// Its data, the lines joined by line feeds.
    pub data: String,
}

/// Why a stream cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event is too large.
    #[error("an event of the stream is larger than {limit} bytes")]
    EventTooLarge {
        /// The limit that was met.
        limit: usize,
    },
}

/// The parser of one stream.
#[derive(Debug)]
pub struct SseParser {
    /// The line that has started in an earlier piece.
    line: Vec<u8>,
    /// Whether the last byte was a carriage return, whose line feed may still come.
    after_carriage_return: bool,
    /// Whether no line has ended yet, so that a byte order mark may stand before it.
    first_line: bool,
    event: String,
    data: String,
    has_data: bool,
    /// Bytes of the current event's finished lines.
    event_bytes: usize,
    limit: usize,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseParser {
    /// A parser that accepts events of up to `limit` bytes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            after_carriage_return: false,
            first_line: true,
            event: String::new(),
            data: String::new(),
            has_data: false,
            event_bytes: 0,
            limit,
        }
    }

    /// Reads the next bytes of the stream and appends the events they complete to `events`.
    ///
    /// # Errors
    /// [`SseError`]; the events before the fault have been appended, and the stream cannot be read further.
    pub fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        if self.after_carriage_return && !bytes.is_empty() {
            self.after_carriage_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.check_size(end)?;
            if self.line.is_empty() {
                self.take_line(&bytes[..end], events);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                self.take_line(&line, events);
            }
            let rest = &bytes[end + 1..];
            bytes = if bytes[end] == b'\r' {
                self.after_carriage_return = rest.is_empty();
                rest.strip_prefix(b"\n").unwrap_or(rest)
            } else {
                rest
            };
        }
        self.check_size(bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn check_size(&self, more: usize) -> Result<(), SseError> {
        if self.event_bytes + self.line.len() + more > self.limit {
            return Err(SseError::EventTooLarge { limit: self.limit });
        }
        Ok(())
    }

    fn take_line(&mut self, mut line: &[u8], events: &mut Vec<SseEvent>) {
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(events);
            return;
        }
        self.event_bytes += line.len();
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"event" => self.event = value.into_owned(),
            b"data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(&value);
                self.has_data = true;
            }
            // Comments have an empty field name; ids and reconnection times are of no use to one answer.
            _ => {}
        }
    }

    fn dispatch(&mut self, events: &mut Vec<SseEvent>) {
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        self.event_bytes = 0;
        if std::mem::take(&mut self.has_data) {
            events.push(SseEvent { event, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        for piece in pieces {
            parser.feed(piece, &mut events).unwrap();
        }
        events.into_iter().map(|event| (event.event, event.data)).collect()
    }

    fn event(event: &str, data: &str) -> (String, String) {
        (event.to_owned(), data.to_owned())
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("event: a\ndata: 1\n\n", &[("a", "1")]),
            ("event:a\ndata:1\n\n", &[("a", "1")]),
            ("data:  two spaces\n\n", &[("", " two spaces")]),
            ("data: a\ndata: b\n\n", &[("", "a\nb")]),
            ("data\n\n", &[("", "")]),
            ("data: a: b\n\n", &[("", "a: b")]),
            (": comment\n\ndata: 1\n\n", &[("", "1")]),
            ("event: lost\n\ndata: 1\n\n", &[("", "1")]),
            ("id: 7\nretry: 5\nother: x\ndata: 1\n\n", &[("", "1")]),
            ("data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n", &[("", "1"), ("", "2"), ("", "3")]),
            ("\u{feff}data: 1\n\ndata: \u{feff}2\n\n", &[("", "1"), ("", "\u{feff}2")]),
            ("data: 1\n\n\n\ndata: 2", &[("", "1")]),
            ("data: 1\n", &[]),
        ];
        for (stream, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|(name, data)| event(name, data)).collect();
            assert_eq!(parse(&[stream.as_bytes()]), expected, "{stream:?}");
        }
    }

    #[test]
    fn every_cut_in_two_gives_the_same_events() {
        let stream = "\u{feff}event: é\r\ndata: ☃ 𝄞\r\n\r\n: ping\r\rdata: a\ndata: b\r\n\n".as_bytes();
        let whole = parse(&[stream]);
        assert_eq!(whole, [event("é", "☃ 𝄞"), event("", "a\nb")]);
        for cut in 0..=stream.len() {
            assert_eq!(parse(&[&stream[..cut], &stream[cut..]]), whole, "cut at byte {cut}");
        }
    }

    #[test]
    fn an_event_past_the_limit_is_an_error_however_it_arrives() {
        let too_large = Err(SseError::EventTooLarge { limit: 16 });
        for stream in ["data: 12345678901\n\n", "data: 1234\ndata: 5678\n\n", "12345678901234567"] {
            let mut at_once = SseParser::with_limit(16);
            assert_eq!(at_once.feed(stream.as_bytes(), &mut Vec::new()), too_large, "{stream:?}");
            let mut bytewise = SseParser::with_limit(16);
            let result =
                stream.as_bytes().chunks(1).try_for_each(|byte| bytewise.feed(byte, &mut Vec::new()));
            assert_eq!(result, too_large, "{stream:?} byte by byte");
        }
        let mut parser = SseParser::with_limit(16);
        let mut events = Vec::new();
        let many = "data: 1234567890\n\n".repeat(50);
        parser.feed(many.as_bytes(), &mut events).unwrap();
        assert_eq!(events.len(), 50, "the limit is for one event, not for the stream");
    }

    #[test]
    fn events_before_the_fault_are_handed_over() {
        let mut events = Vec::new();
        let result = SseParser::with_limit(10).feed(b"data: 1\n\ndata: 1234567890\n\n", &mut events);
        assert_eq!(result, Err(SseError::EventTooLarge { limit: 10 }));
        assert_eq!(events, [SseEvent { event: String::new(), data: "1".into() }]);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            lines in prop::collection::vec("(data|event|id|)(:|: |)[aé☃𝄞: ]{0,6}(\r\n|\n|\r)|\n|\r|\r\n", 0..24),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let stream = lines.concat();
            let stream = stream.as_bytes();
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            ends.push(stream.len());
            ends.sort_unstable();
            let mut pieces = Vec::new();
            let mut start = 0;
            for end in ends {
                pieces.push(&stream[start..end]);
                start = end;
            }
            prop_assert_eq!(parse(&pieces), parse(&[stream]));
        }

        #[test]
        fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            parse(&[&bytes]);
        }
    }
}

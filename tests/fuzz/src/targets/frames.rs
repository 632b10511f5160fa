//! Frames of the language server protocol from bytes that anybody may send.
//!
//! Rule: reading ends, whatever comes, and no body is larger than the sent bytes.

use kode_ls::transport::frame::FrameReader;

pub(crate) fn run(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let mut reader = FrameReader::new(bytes);
        while let Some(frame) = reader.next().await.expect("a slice cannot fail to be read") {
            if let Ok(body) = frame {
                assert!(body.len() <= bytes.len());
            }
        }
    });
}

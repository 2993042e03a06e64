//! What hash workers and their server say to each other: any bytes are one exact frame, or none.
#![no_main]

use hasher::remote::frame::{Frame, HEADER, MOST};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((header, body)) = bytes.split_first_chunk::<HEADER>() else { return };
    if let Ok((_, length)) = Frame::header(*header) {
        assert!(length <= MOST);
    }
    // The kind of the header, whatever length it names.
    if let Ok(frame) = Frame::decode(header[HEADER - 1], body) {
        let written = frame.encode();
        assert_eq!(&written[HEADER..], body, "one spelling of a frame");
        let (header, _) = written.split_first_chunk().expect("it has a header");
        assert_eq!(Frame::header(*header).expect("it is no longer than any").1, body.len());
    }
});

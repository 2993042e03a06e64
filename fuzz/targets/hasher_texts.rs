//! What the hasher keeps beside the hashes: names and checks of keys, calibrations. What is read is written in one way.
#![no_main]

use hasher::{Calibration, KeyCheck, KeyId, Work};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(id) = KeyId::from_base64(text) {
        assert_eq!(id.to_string(), text, "one text for the same name");
    }
    if let Ok(check) = text.parse::<KeyCheck>() {
        let written = check.to_string();
        assert!(written.eq_ignore_ascii_case(text));
        assert_eq!(written.parse(), Ok(check));
    }
    if let Ok(work) = text.parse::<Work>() {
        assert_eq!(work.to_string().parse(), Ok(work), "what was written is read");
    }
    if let Ok(calibration) = Calibration::from_text(text) {
        // Numbers are rounded once.
        let written = calibration.to_text();
        let again = Calibration::from_text(&written).expect("what was written is read");
        assert_eq!(again.machine(), calibration.machine());
        assert_eq!(again.to_text(), written);
    }
});

//! What is measured of devices.

use crate::machine::gpus;
use diptych::internals::tune::facts;

#[test]
fn every_device_has_figures_that_are_no_nonsense() {
    for context in gpus() {
        let device = context.device().expect("a GPU's");
        let measured = facts::measure(device).expect("figures");
        // However slow a driver is: a thousand launches a second, a hundred million multiply-adds, ten million bytes.
        assert!((1..1_000_000).contains(&measured.launch_ns), "{measured:?}");
        assert!(measured.f32_millions > 100 && measured.i8_millions > Some(10), "{measured:?}");
        assert!(measured.copy_mb > 10 && measured.cached_mb > 10 && measured.local_mb > 10, "{measured:?}");
        assert!((1..=64).contains(&measured.least_work_group), "{measured:?}");
        assert_eq!(measured.f16_millions.is_some(), device.info().limits.native_half);
    }
}

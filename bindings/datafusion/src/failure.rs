//! What an engine is told of an error.

use datafusion::error::DataFusionError;
use std::io;

/// An error as an engine distinguishes them: a lost device, and one that cannot be opened, are I/O errors, which
/// Ballista tries again (a task three times more, elsewhere where it can); any other fails the query.
pub fn failure(error: diptych::Error) -> DataFusionError {
    let absent = matches!(error, diptych::Error::NoDevice { .. } | diptych::Error::OpenClLibrary { .. });
    if error.is_device_lost() || absent {
        DataFusionError::IoError(io::Error::other(error))
    } else {
        DataFusionError::External(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn lost() -> diptych::Error {
        diptych::Error::DeviceLost { api: "Vulkan", reason: "unplugged".to_owned() }
    }

    /// What Ballista makes of it, however it is wrapped on the way.
    #[cfg(feature = "ballista")]
    #[test]
    fn ballista_tries_a_lost_device_again_and_nothing_else() {
        use ballista_core::error::BallistaError;
        use ballista_core::serde::protobuf::FailedTask;

        let shared = diptych::Error::Shared { of: 3, source: Arc::new(lost().at_node("stem")) };
        let absent = diptych::Error::NoDevice {
            backend: "wgpu".to_owned(),
            wanted: "a GPU".to_owned(),
            tried: Vec::new(),
        };
        let rows = [
            ("lost", lost(), true),
            ("lost in a run that others share", shared, true),
            ("absent", absent, true),
            ("refused", diptych::Error::unsupported("a batch", "a reason"), false),
        ];
        for (name, error, wanted) in rows {
            let text = format!("{error:?}");
            let wrapped = failure(error).context("of the query");
            let task = FailedTask::from(BallistaError::from(wrapped));
            assert_eq!((task.retryable, task.count_to_failures), (wanted, wanted), "{name}");
            assert!(task.error.contains(&text), "{name}: {}", task.error);
        }
        // As `External` it would not be.
        let external = DataFusionError::External(Box::new(io::Error::other(lost())));
        assert!(!FailedTask::from(BallistaError::from(external)).retryable);
    }

    #[test]
    fn an_error_keeps_its_cause() {
        let DataFusionError::IoError(error) = failure(lost()) else { unreachable!("a lost device") };
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<diptych::Error>());
        assert!(cause.is_some_and(diptych::Error::is_device_lost));
        let other = failure(diptych::Error::Shared {
            of: 1,
            source: Arc::new(diptych::Error::input("x", "nothing", "a tensor")),
        });
        assert!(matches!(other, DataFusionError::External(_)));
    }
}

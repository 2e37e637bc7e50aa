//! Devices that are lost.

use crate::pictures;
use crate::results::{found, local, models, options, query, same};
use datafusion::error::DataFusionError;
use diptych::{Backend, Context};

/// The devices that the tests run on: none missing where `DIPTYCH_REQUIRE_DEVICES` says so.
pub fn wgpu() -> Option<Backend> {
    match Context::new(Backend::Wgpu) {
        Ok(_) => Some(Backend::Wgpu),
        Err(error) if std::env::var("DIPTYCH_REQUIRE_DEVICES").as_deref() == Ok("1") => panic!("{error}"),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_device_is_an_io_error_and_the_next_query_opens_it_anew() {
    let Some(backend) = wgpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pictures.parquet");
    pictures::write(&file, 12, Some(5), 4).unwrap();
    let models = models(options(backend)).await;
    let context = local(&models, &file).await;
    let sql = "SELECT id, pose(image) FROM pictures";
    let wanted = found(&query(&context, sql).await.unwrap());
    for turn in 2..4 {
        models.context().wgpu().unwrap().0.destroy();
        let error = query(&context, sql).await.unwrap_err();
        let DataFusionError::IoError(cause) = error.find_root() else { panic!("{error:?}") };
        let cause = cause.get_ref().and_then(|cause| cause.downcast_ref::<diptych::Error>());
        assert!(cause.is_some_and(diptych::Error::is_device_lost), "{error}");
        same(&wanted, &found(&query(&context, sql).await.unwrap()));
        assert_eq!(models.opened(), turn);
    }
}

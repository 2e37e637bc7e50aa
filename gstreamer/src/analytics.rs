//! What GStreamer 1.24 and later have for it: relation metadata for boxes, and tensors from 1.26 on.

use crate::decode::Detection;
use crate::failure::Failure;
#[cfg(feature = "v1_26")]
use crate::tensors::Tensors;
use crate::tensors::View;
use gst::glib;
use gst_analytics::prelude::*;

/// Adds a detection to the buffer's relation metadata for each of these, with its class and score, and their relation.
pub(crate) fn add_detections(
    buffer: &mut gst::BufferRef,
    detections: &[Detection],
    view: &View,
    label: impl Fn(usize) -> String,
) -> Result<(), Failure> {
    let refused = |error: glib::BoolError| Failure::model(format!("relation metadata: {error}"));
    let mut meta = gst_analytics::AnalyticsRelationMeta::add(buffer);
    for detection in detections {
        let [left, top, right, bottom] = detection.area.map(f64::from);
        let ([left, top], [right, bottom]) =
            (view.frame_place([left, top]), view.frame_place([right, bottom]));
        let [x, y, width, height] = [left, top, right - left, bottom - top].map(|v| v.round() as i32);
        let class = glib::Quark::from_str(label(detection.class));
        let area = meta.add_od_mtd(class, x, y, width, height, detection.score).map_err(refused)?.id();
        let class = meta.add_one_cls_mtd(detection.score, class).map_err(refused)?.id();
        meta.set_relation(gst_analytics::RelTypes::RELATE_TO, area, class).map_err(refused)?;
    }
    Ok(())
}

/// Adds the tensors as `GstTensorMeta`, which shares their memory.
#[cfg(feature = "v1_26")]
pub(crate) fn add_tensors(buffer: &mut gst::BufferRef, tensors: &Tensors) {
    use crate::tensors::type_number;
    use glib::translate::FromGlib;
    use gst_analytics::{Tensor, TensorDataType, TensorDimOrder, TensorMeta};

    /// A tensor's elements as memory of a buffer.
    struct Bytes(diptych::HostTensor);
    impl AsRef<[u8]> for Bytes {
        fn as_ref(&self) -> &[u8] {
            self.0.bytes()
        }
    }

    let all = tensors.all().iter().map(|tensor| {
        let dims = tensor.data.dims();
        // SAFETY: the number is one of the enumeration's.
        let data_type = unsafe { TensorDataType::from_glib(type_number(tensor.data.dtype())) };
        Tensor::new_simple(
            glib::Quark::from_str(&tensor.name),
            data_type,
            gst::Buffer::from_slice(Bytes(tensor.data.clone())),
            TensorDimOrder::RowMajor,
            dims.extents(),
        )
    });
    TensorMeta::add(buffer).set(all.collect());
}

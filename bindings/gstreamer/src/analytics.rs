//! What GStreamer 1.24 and later have for it: relation metadata for boxes, and tensors from 1.26 on.

use crate::decode::Region;
use crate::failure::Failure;
#[cfg(feature = "v1_26")]
use crate::tensors::Tensors;
use gst::glib;
use gst_analytics::prelude::*;

/// Adds to the buffer's relation metadata, for each of these in a frame of such extents, where it is, its class, and that they
/// belong together.
pub(crate) fn add_regions(
    buffer: &mut gst::BufferRef,
    regions: &[Region],
    [width, height]: [u32; 2],
) -> Result<(), Failure> {
    let refused = |error: glib::BoolError| Failure::model(format!("relation metadata: {error}"));
    let mut meta = gst_analytics::AnalyticsRelationMeta::add(buffer);
    for region in regions {
        let [left, top, right, bottom] = region.area;
        let [x, w] = [left, right - left].map(|share| (share * f64::from(width)).round() as i32);
        let [y, h] = [top, bottom - top].map(|share| (share * f64::from(height)).round() as i32);
        let (class, score) = (glib::Quark::from_str(&region.label), region.score as f32);
        let area = meta.add_od_mtd(class, x, y, w, h, score).map_err(refused)?.id();
        let class = meta.add_one_cls_mtd(score, class).map_err(refused)?.id();
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

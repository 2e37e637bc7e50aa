//! Lets products with packed weights round what they multiply ([`QuantizedGemm::rounded`]).

use crate::lower::network::Network;
use crate::ops::quantized_gemm::QuantizedGemm;
use std::any::Any;
use std::sync::Arc;

/// Has every product with packed weights round its rows where that takes less time.
pub(crate) fn round_activations(network: &mut Network<'_>) {
    for place in 0..network.units().len() {
        let unit = &network.units()[place];
        let options = unit.operator().and_then(|own| (own as &dyn Any).downcast_ref::<QuantizedGemm>());
        if let Some(&options) = options.filter(|options| !options.rounded) {
            let rounded = unit.with_operator(Arc::new(QuantizedGemm { rounded: true, ..options }));
            network.replace(place, rounded);
        }
    }
}

//! `CUDA_VISIBLE_DEVICES`, by which schedulers give each worker cards of its own. NVIDIA's OpenCL driver honours it
//! by itself, its Vulkan driver does not.
//!
//! | entry | card |
//! |---|---|
//! | a number | the one at this place in the order of PCI addresses, counted from 0 |
//! | `GPU-` and the beginning of a UUID | the only one whose UUID begins so |
//!
//! As in CUDA, what follows an entry without a card is not read, so that `-1` and an empty text hide all cards. CUDA
//! counts in the order of PCI addresses where cards are equal or `CUDA_DEVICE_ORDER=PCI_BUS_ID`; its order of different
//! cards, the fastest first, is not documented (CUDA C++ Programming Guide, "CUDA Environment Variables").

use super::identity::Identity;

const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

/// PCI's number of NVIDIA.
pub(crate) const NVIDIA: u32 = 0x10de;

/// Which of NVIDIA's cards are to be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Visible(String);

impl Visible {
    /// What the environment says, also if it says that there are none.
    pub(crate) fn from_environment() -> Option<Self> {
        std::env::var(VARIABLE).ok().map(Visible)
    }

    /// The places in `cards` of those that are visible, in the order in which they are listed.
    #[cfg(any(feature = "wgpu", test))]
    pub(crate) fn of(&self, cards: &[Identity]) -> Vec<usize> {
        let mut counted: Vec<usize> = (0..cards.len()).collect();
        counted.sort_by_key(|&card| {
            cards.get(card).and_then(|card| card.pci).map_or((1, None), |pci| (0, Some(pci)))
        });
        let mut visible = Vec::new();
        for entry in self.0.split(',').map(str::trim) {
            let found = match entry.parse::<usize>() {
                Ok(place) => counted.get(place).copied(),
                Err(_) => the_only_one(entry, cards),
            };
            let Some(card) = found else { break };
            if !visible.contains(&card) {
                visible.push(card);
            }
        }
        visible
    }

    /// For people: what it says.
    pub(crate) fn told(&self) -> String {
        format!("{VARIABLE}={}", self.0)
    }
}

/// The card whose UUID begins with `text`, if it is one.
#[cfg(any(feature = "wgpu", test))]
fn the_only_one(text: &str, cards: &[Identity]) -> Option<usize> {
    let text = text.to_ascii_lowercase();
    if !text.starts_with("gpu-") {
        return None;
    }
    let begins = |card: &Identity| {
        card.uuid.is_some_and(|uuid| uuid.to_string().to_ascii_lowercase().starts_with(&text))
    };
    let mut found = cards.iter().enumerate().filter(|(_, card)| begins(card)).map(|(place, _)| place);
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::identity::DeviceUuid;

    #[test]
    fn cards_are_counted_by_their_address_and_named_by_their_uuid() {
        let card = |bus: u8, first: u8| Identity {
            pci: format!("{bus:02x}:00.0").parse().ok(),
            uuid: Some(DeviceUuid([first, bus, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        };
        // As a driver may list them: not in the order of their addresses.
        let cards = [card(0x83, 0xaa), card(0x01, 0xaa), card(0x41, 0xbb)];
        let of = |text: &str| Visible(text.to_owned()).of(&cards);
        assert_eq!(of("0,1,2"), [1, 2, 0]);
        assert_eq!(of("2, 0"), [0, 1]);
        assert_eq!(of("GPU-bb"), [2]);
        assert_eq!(of("GPU-AA83,1"), [0, 2]);
        assert_eq!(of("1,1"), [2]);
        // Two cards begin so; no card; and nothing after either.
        for nothing in ["", "-1", "GPU-aa", "GPU-cc,0", "3,0", "MIG-aa83", "none", "aa83"] {
            assert_eq!(of(nothing), [0; 0], "{nothing:?}");
        }
        assert_eq!(of("0,-1,1"), [1]);
    }
}

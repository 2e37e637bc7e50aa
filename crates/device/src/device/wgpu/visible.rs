//! The cards that `CUDA_VISIBLE_DEVICES` shows.
//!
//! | entry | card |
//! |---|---|
//! | a number | the one at this place in the order of PCI addresses, counted from 0 |
//! | `GPU-` and the beginning of a UUID | the only one whose UUID begins so |
//!
//! As in CUDA, what follows an entry without a card is not read, so that `-1` and an empty text hide all cards. CUDA
//! counts in the order of PCI addresses where cards are equal or `CUDA_DEVICE_ORDER=PCI_BUS_ID`; its order of different
//! cards, the fastest first, is not documented (CUDA C++ Programming Guide, "CUDA Environment Variables").

use crate::device::identity::Identity;
use crate::device::visible::Visible;
use crate::sorted;

/// PCI's number of NVIDIA.
pub(super) const NVIDIA: u32 = 0x10de;

/// The places in `cards` of those that are visible, in the order in which they are listed.
pub(super) fn places(visible: &Visible, cards: &[Identity]) -> Vec<usize> {
    let address = |&card: &usize| {
        let pci = cards.get(card).and_then(|card| card.pci);
        (pci.is_none(), pci)
    };
    let mut counted: Vec<usize> = (0..cards.len()).collect();
    sorted::sort_by_key(&mut counted, address);
    let mut visible_cards = Vec::new();
    for entry in visible.0.split(',').map(str::trim) {
        let found = match entry.parse::<usize>() {
            Ok(place) => counted.get(place).copied(),
            Err(_) => the_only_one(entry, cards),
        };
        let Some(card) = found else { break };
        if !visible_cards.contains(&card) {
            visible_cards.push(card);
        }
    }
    visible_cards
}

/// The card whose UUID begins with `text`, if it is one.
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
        let of = |text: &str| places(&Visible(text.to_owned()), &cards);
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

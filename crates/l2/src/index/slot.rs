//! One word for one record.

use crate::format::UNIT_BYTES;

/// Bits of a key that a slot keeps.
pub const TAG_BITS: u32 = 20;
const ADDRESS_BITS: u32 = 35;
/// Every address there is.
pub(super) const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;
const CLASS_BITS: u32 = 7;
const REFERENCE_BITS: u32 = 2;
const CLASS_AT: u32 = ADDRESS_BITS;
const REFERENCES_AT: u32 = CLASS_AT + CLASS_BITS;
const TAG_AT: u32 = REFERENCES_AT + REFERENCE_BITS;
const CLASSES: usize = 1 << CLASS_BITS;

const _: () = assert!(TAG_AT + TAG_BITS == u64::BITS);

/// Tag 20 bits │ references 2 │ length class 7 │ address 35, in units of 512 bytes. No record is at
/// address 0, so 0 is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u64);

impl Slot {
    /// A slot without references.
    pub fn new(tag: u64, class: u8, address: u64) -> Self {
        let address = address & ADDRESS_MASK;
        let class = u64::from(class) & (CLASSES as u64 - 1);
        Self(tag << TAG_AT | class << CLASS_AT | address)
    }

    /// The slot in a word.
    pub fn from_bits(bits: u64) -> Option<Self> {
        (bits != 0).then_some(Self(bits))
    }

    /// The word.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Part of the key.
    pub fn tag(self) -> u64 {
        self.0 >> TAG_AT
    }

    /// Where the record is, in units.
    pub fn address(self) -> u64 {
        self.0 & ADDRESS_MASK
    }

    /// Class of its length.
    pub fn class(self) -> u8 {
        (self.0 >> CLASS_AT) as u8 & (CLASSES as u8 - 1)
    }

    /// How often it was of use since it was written: 0 to 3.
    pub fn references(self) -> u64 {
        self.0 >> REFERENCES_AT & ((1 << REFERENCE_BITS) - 1)
    }

    /// With one reference more.
    pub fn referenced(self) -> Self {
        if self.references() == (1 << REFERENCE_BITS) - 1 {
            return self;
        }
        Self(self.0 + (1 << REFERENCES_AT))
    }
}

/// Lengths that seven bits can express: single units at first, then steps of about 1/16. So one
/// read always gets the whole record, and 3 % too much on average.
#[derive(Clone, Debug)]
pub struct LengthClasses([u16; CLASSES]);

impl LengthClasses {
    /// Classes for records of up to `units_max` units. The longest has a class of its own, so that
    /// whole records that did not compress are read to the byte.
    pub fn new(units_max: u64) -> Self {
        let units_max = units_max.clamp(CLASSES as u64, u64::from(u16::MAX)) as f64;
        let mut units = [0; CLASSES];
        // The ratio that leads from here to the longest in the steps that are left. A step is at
        // least one unit.
        let mut reached = 0_f64;
        for (class, length) in units.iter_mut().enumerate() {
            let left = (CLASSES - class) as f64;
            let ratio = (units_max / reached.max(1.0)).powf(1.0 / left);
            reached = (reached * ratio).ceil().max(reached + 1.0).min(units_max);
            *length = reached as u16;
        }
        units[CLASSES - 1] = units_max as u16;
        Self(units)
    }

    /// The smallest class for a record of this many units.
    pub fn class_of(&self, units: u64) -> u8 {
        let class = self.0.partition_point(|length| u64::from(*length) < units);
        class.min(CLASSES - 1) as u8
    }

    /// Bytes to read for a record of a class.
    pub fn bytes(&self, class: u8) -> u64 {
        u64::from(self.0[usize::from(class) % CLASSES]) * UNIT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_its_parts_apart() {
        let mut slot = Slot::new((1 << TAG_BITS) - 1, 127, (1 << ADDRESS_BITS) - 1);
        for references in [0, 1, 2, 3, 3] {
            assert_eq!(slot.references(), references);
            assert_eq!((slot.tag(), slot.class()), ((1 << TAG_BITS) - 1, 127));
            assert_eq!(slot.address(), (1 << ADDRESS_BITS) - 1);
            slot = slot.referenced();
        }
        assert_eq!(Slot::from_bits(0), None);
    }

    #[test]
    fn a_class_covers_its_lengths_and_little_more() {
        for units_max in [257, 513, 2049, 1, 65535] {
            let classes = LengthClasses::new(units_max);
            let (mut read, mut needed) = (0, 0);
            for units in 1..=units_max {
                let bytes = classes.bytes(classes.class_of(units));
                assert!(bytes >= units * UNIT_BYTES, "{units} of {units_max}");
                read += bytes;
                needed += units * UNIT_BYTES;
            }
            assert!(read as f64 <= needed as f64 * 1.06 || units_max < 128, "{units_max}");
            let longest = classes.bytes(classes.class_of(units_max));
            assert!(units_max < 128 || longest == units_max * UNIT_BYTES);
        }
    }
}

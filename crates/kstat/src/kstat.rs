//! The in-memory form of a kstat, the same for all text formats.

use std::fmt;

/// The value of a row, with OpenZFS's data type.
///
/// FreeBSD and illumos texts carry no type. Their readers choose [`Value::U64`] for a number that
/// is not negative, [`Value::I64`] for a negative one, and [`Value::Str`] for anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Type 0: up to 15 characters.
    Char(String),
    /// Type 1: signed 32 bits.
    I32(i32),
    /// Type 2: unsigned 32 bits.
    U32(u32),
    /// Type 3: signed 64 bits.
    I64(i64),
    /// Type 4: unsigned 64 bits, which nearly every ZFS counter has.
    U64(u64),
    /// Type 5: C `long`.
    Long(i64),
    /// Type 6: C `unsigned long`.
    Ulong(u64),
    /// Type 7: a string of any length.
    Str(String),
}

impl Value {
    /// The data type code of the Linux text, 0 to 7.
    pub fn type_code(&self) -> u8 {
        match self {
            Self::Char(_) => 0,
            Self::I32(_) => 1,
            Self::U32(_) => 2,
            Self::I64(_) => 3,
            Self::U64(_) => 4,
            Self::Long(_) => 5,
            Self::Ulong(_) => 6,
            Self::Str(_) => 7,
        }
    }

    /// The number; `None` for text. 128 bits hold every numeric type.
    pub fn as_integer(&self) -> Option<i128> {
        match *self {
            Self::I32(number) => Some(number.into()),
            Self::U32(number) => Some(number.into()),
            Self::I64(number) | Self::Long(number) => Some(number.into()),
            Self::U64(number) | Self::Ulong(number) => Some(number.into()),
            Self::Char(_) | Self::Str(_) => None,
        }
    }

    /// The text; `None` for a number.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Char(text) | Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Reads a value from a text without types.
    pub(crate) fn infer(text: &str) -> Self {
        if let Ok(number) = text.parse() {
            Self::U64(number)
        } else if let Ok(number) = text.parse() {
            Self::I64(number)
        } else {
            Self::Str(text.to_owned())
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::I32(number) => number.fmt(formatter),
            Self::U32(number) => number.fmt(formatter),
            Self::I64(number) | Self::Long(number) => number.fmt(formatter),
            Self::U64(number) | Self::Ulong(number) => number.fmt(formatter),
            Self::Char(text) | Self::Str(text) => text.fmt(formatter),
        }
    }
}

/// One row of a kstat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name of the statistic, unique within its kstat; may contain spaces.
    pub name: String,
    /// Its value.
    pub value: Value,
}

/// A named table of statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kstat {
    /// Publisher, such as `zfs` or `zfs/tank` (Linux: the directory below `/proc/spl/kstat`).
    pub module: String,
    /// Name within the module, such as `arcstats`.
    pub name: String,
    /// Class, such as `misc`; empty in the Linux text, which does not have it.
    pub class: String,
    /// Instance number (illumos); 0 elsewhere.
    pub instance: u32,
    /// Number that the kernel gave this kstat (Linux); 0 elsewhere.
    pub kid: i64,
    /// Flag bits of the Linux header; 1 (virtual) for every ZFS kstat.
    pub flags: u32,
    /// `data_size` of the Linux header in bytes if it is not rows × 272; `None` means rows × 272.
    /// Strings are stored outside the rows and add to it.
    pub data_size_bytes: Option<u64>,
    /// The creation time of the kstat, in ns of the machine's monotonic clock; 0 if unknown.
    pub crtime_ns: i64,
    /// The time of the reading, same clock; 0 if unknown.
    pub snaptime_ns: i64,
    /// The rows, in the order of the text.
    pub entries: Vec<Entry>,
}

impl Kstat {
    /// An empty kstat `module`/`name` with the flags that every ZFS kstat has.
    pub fn new(module: &str, name: &str) -> Self {
        Self {
            module: module.to_owned(),
            name: name.to_owned(),
            class: String::new(),
            instance: 0,
            kid: 0,
            flags: 1,
            data_size_bytes: None,
            crtime_ns: 0,
            snaptime_ns: 0,
            entries: Vec::new(),
        }
    }

    /// The value of the first row with this name. Linear in the number of rows.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| &entry.value)
    }

    /// The number in the row `name`; `None` if the row is missing or holds text.
    pub fn integer(&self, name: &str) -> Option<i128> {
        self.get(name)?.as_integer()
    }
}

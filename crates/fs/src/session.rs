//! The session: FUSE requests in, answers out.
//!
//! No other module knows the protocol. A request comes from the kernel in one of two ways, by the
//! device or through a ring. From there on its path is the same:
//!
//! ```text
//! device ─┐                        ┌─ hit, control directory ─► answered where it arrived
//!         ├─► request ─► exchange ─┤
//! ring ───┘                        └─ may wait ─► in flight ─► dispatch ─► view ─► origin
//!                                                     ▲
//!                            interrupt, watch ────────┘ answer in its stead
//! ```
//!
//! | module | idea |
//! |---|---|
//! | `protocol` | numbers of the protocol, and headers |
//! | `opcodes` | the table of opcodes: what holds for each |
//! | `operation`, `arguments` | what can be asked for, and how it is read |
//! | `request`, `reply` | a request as it came, and the layout of an answer |
//! | `state` | what all threads share |
//! | `exchange` | answers a request where it arrived, or has it wait |
//! | `dispatch`, `handlers` | which handler carries a request out, and what each does |
//! | `control_attributes` | names, rights and attributes of the control directory |
//! | `privileges` | set-user-id and set-group-id, which changes take away |
//! | `in_flight` | requests that wait, and which side answers them |
//! | `caller` | what `/proc` says of a thread that waits |
//! | `lost_answers` | takes back what an undelivered answer would have given |
//! | `negotiation` | what is agreed on first |
//! | `device` | requests by the device |
//! | `uring` | requests through io_uring |
//!
//! File locks need no code here. If the file system does not ask for `flock(2)` and `fcntl(2)`
//! locks, the kernel keeps those of a mount itself.

mod arguments;
mod caller;
mod control_attributes;
pub(crate) mod device;
mod dispatch;
mod exchange;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod handlers;
pub(crate) mod in_flight;
mod lost_answers;
mod negotiation;
mod opcodes;
mod operation;
#[cfg(test)]
mod panics;
mod privileges;
mod protocol;
mod reply;
mod request;
mod state;
#[cfg(test)]
mod tests;
pub(crate) mod uring;

pub(crate) use negotiation::{Agreed, RequestedFeatures, negotiate};
pub(crate) use state::Session;

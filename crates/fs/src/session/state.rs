//! The state that all threads which answer requests share.

use super::in_flight::InFlight;
use crate::control::Control;
use crate::view::View;
use crate::workers::Permits;
use ogive_origin::Origin;
use std::sync::Arc;

/// The state of all threads that answer requests.
pub(crate) struct Session<O: Origin> {
    pub(crate) view: Arc<View<O>>,
    pub(crate) control: Arc<Control<O>>,
    pub(crate) in_flight: Arc<InFlight>,
    /// Device nodes may be made.
    pub(crate) device_nodes: bool,
    /// Which of the device's threads may wait for the origin.
    pub(crate) permits: Arc<Permits>,
    /// The only user whose requests are answered; `None` for all users.
    pub(crate) owner: Option<u32>,
}

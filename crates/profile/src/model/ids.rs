//! Numbers of interned values. Each kind counts from 0 in the order of first use, within one
//! [`Profile`](crate::Profile). A number has no meaning in another profile.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// The number as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A string: a symbol, a module, a thread's name.
    StringId
}
id! {
    /// A frame: one function of one module.
    FrameId
}
id! {
    /// A stack: a node in the tree of stacks. [`StackId::EMPTY`] is the stack without frames.
    StackId
}
id! {
    /// A thread: process number, thread number and name.
    ThreadId
}

impl StackId {
    /// The stack without frames. Every other stack ends there.
    pub const EMPTY: Self = Self(0);
}

impl StringId {
    /// The empty string.
    pub const EMPTY: Self = Self(0);
}

//! Turns that long work takes with the other tasks of its thread.

#[cfg(target_family = "wasm")]
mod page {
    use crate::clock::Instant;
    use std::time::Duration;
    use wasm_bindgen::JsValue;
    use wasm_bindgen_futures::JsFuture;

    /// How long the work keeps the thread: half a frame at sixty a second.
    const TURN: Duration = Duration::from_millis(8);

    /// When the work last began a turn.
    #[derive(Debug)]
    pub struct Turns(Instant);

    impl Turns {
        /// A turn that begins now.
        pub fn begin() -> Self {
            Turns(Instant::now())
        }

        /// Lets the page's other tasks go first, if the work has had the thread for some milliseconds.
        pub async fn pass(&mut self) {
            if self.0.elapsed() >= TURN {
                others_first().await;
                self.0 = Instant::now();
            }
        }
    }

    /// Comes back after the tasks that the page has lined up: by a message to itself, because timers wait for
    /// milliseconds when they follow each other.
    async fn others_first() {
        let Ok(channel) = web_sys::MessageChannel::new() else { return };
        let received = js_sys::Promise::new(&mut |resolve, reject| {
            channel.port1().set_onmessage(Some(&resolve));
            if let Err(error) = channel.port2().post_message(&JsValue::NULL) {
                // A promise that was not kept is as good.
                let _ = reject.call1(&JsValue::NULL, &error);
            }
        });
        let _ = JsFuture::from(received).await;
        channel.port1().close();
    }
}

#[cfg(not(target_family = "wasm"))]
mod threads {
    /// What would hold up the others is on a thread of its own.
    #[derive(Debug)]
    pub struct Turns;

    impl Turns {
        /// A turn that begins now.
        pub fn begin() -> Self {
            Turns
        }

        #[expect(clippy::unused_async, reason = "a page's thread passes on")]
        pub async fn pass(&mut self) {}
    }
}

#[cfg(target_family = "wasm")]
pub use page::Turns;
#[cfg(not(target_family = "wasm"))]
pub use threads::Turns;

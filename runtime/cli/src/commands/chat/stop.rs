//! Signals that ask the program to end.

use std::pin::Pin;

use crate::workspace;

/// Whether the program is to end. Once it is, it stays so.
pub struct Stop {
    signals: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Stop {
    /// Takes notice from when it is first waited for.
    pub fn new() -> Self {
        Self { signals: Some(Box::pin(workspace::interruption())) }
    }

    /// Waits until it is to end.
    pub async fn wanted(&mut self) {
        if let Some(signals) = &mut self.signals {
            signals.as_mut().await;
            self.signals = None;
        }
    }

    /// It is to end.
    pub fn want(&mut self) {
        self.signals = None;
    }

    /// Whether it is to end.
    pub fn is_wanted(&self) -> bool {
        self.signals.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn once_wanted_it_stays_wanted() {
        let mut stop = Stop::new();
        assert!(!stop.is_wanted());
        stop.want();
        stop.wanted().await;
        stop.wanted().await;
        assert!(stop.is_wanted());
    }
}

-- The fencing token under which the notice was journaled as sent; NULL once it is known that it was not sent.
ALTER TABLE jobs ADD COLUMN notice_token INTEGER;
-- Recipients whose message may or may not have arrived.
ALTER TABLE broadcasts ADD COLUMN unknown INTEGER NOT NULL DEFAULT 0;
-- Recipients of broadcasts between being taken and the outcome of their message. A sender that stops reporting is
-- replaced, unless its call may have been made.
CREATE TABLE broadcast_recipients (
    broadcast_id INTEGER NOT NULL,
    account_id   INTEGER NOT NULL,
    -- whether the call may have been made
    sending      INTEGER NOT NULL DEFAULT 0,
    -- grows each time the recipient is taken: a sender that was replaced must not send
    token        INTEGER NOT NULL DEFAULT 1,
    -- when the recipient may be taken again, or, while it is being sent to, when the outcome counts as unknown
    due_at       INTEGER NOT NULL,
    PRIMARY KEY (broadcast_id, account_id)
) STRICT;
CREATE INDEX broadcast_recipients_due ON broadcast_recipients (due_at);

-- The fencing token under which the notice was journaled as sent; NULL once it is known that it was not sent.
ALTER TABLE jobs ADD COLUMN notice_token bigint;
-- Recipients whose message may or may not have arrived.
ALTER TABLE broadcasts ADD COLUMN unknown bigint NOT NULL DEFAULT 0;
-- Recipients of broadcasts between being taken and the outcome of their message. A sender that stops reporting is
-- replaced, unless its call may have been made.
CREATE TABLE broadcast_recipients (
    broadcast_id bigint NOT NULL,
    account_id   bigint NOT NULL,
    -- whether the call may have been made
    sending      boolean NOT NULL DEFAULT false,
    -- grows each time the recipient is taken: a sender that was replaced must not send
    token        bigint NOT NULL DEFAULT 1,
    -- when the recipient may be taken again, or, while it is being sent to, when the outcome counts as unknown
    due_at       timestamptz NOT NULL,
    PRIMARY KEY (broadcast_id, account_id)
);
CREATE INDEX broadcast_recipients_due ON broadcast_recipients (due_at);

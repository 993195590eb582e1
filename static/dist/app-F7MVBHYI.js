import{b as Bt,d as Kt,e as Qt,f as Gt,g as Jt,h as zt,i as Xt,j as Zt,k as te,l as tt,n as Y,p as ee,q as se,r as ie,s as ne,u as ae,v as oe}from"./chunk-AORLUFNW.js";import{$ as qt,$a as N,Aa as Nt,Ba as Dt,C as D,D as Lt,E as J,Ia as Wt,M as R,Ma as Ft,N as z,P as At,Pa as Yt,Q as W,U as Ot,V as T,W as X,Wa as jt,X as _,Y as F,Z as S,_ as b,_a as O,aa as Z,ba as I,c as i,ca as Rt,d as v,da as d,e as l,eb as Pt,f as kt,ga as u,ia as h,ib as Vt,ja as M,k as G,ka as r,la as f,lb as Ht,m as Et,ma as k,n as C,pa as It,q as St,qa as $,ra as A,sa as U,ta as Mt,ua as g,v as E,va as p,w as xt,wa as x,y as Ct,ya as Ut,z as Tt}from"./chunk-KWRIH4ZQ.js";var Le=["add-members","ask-to-call","chat-menu","chat-settings","delete-message","message-menu","new-chat","open-member","open-profile","open-search","open-settings","open-threads","pick-emoji","react","set-payer","share-chat","show-frames","show-revisions","show-shortcuts","verify-chat","view-media"],et=null,st=!1;function ce(){let a=import("./message-list-YMQJLTCU.js").catch(t=>{throw he(t)?new Et(0):t});return a.catch(()=>{}),a}function j(){return et||=import("./later-7JG2VHSB.js").then(()=>st=!0,a=>{if(!he(a))throw a;return et=null,!1}),et}function le(){for(let a of Le)addEventListener(a,t=>re(t,()=>new CustomEvent(a,{bubbles:!0,detail:t.detail})));addEventListener("keydown",a=>{st||!Ae(a)||((a.ctrlKey||a.metaKey)&&a.preventDefault(),re(a,()=>new KeyboardEvent("keydown",a)))})}async function re({target:a},t){st||(await j()?a?.dispatchEvent(t()):document.querySelector("chat-view")?.dispatchEvent(new CustomEvent("say",{detail:i("You're offline. Try again when you're back online.")})))}function Ae({key:a,ctrlKey:t,metaKey:e,shiftKey:s,altKey:n,isComposing:o}){return n||o?!1:!t&&!e?a==="?":(s?["f","l"]:["k"]).includes(a.toLowerCase())}var he=a=>a instanceof TypeError&&/module/.test(a.message);function de(a,t,e){let s=0,n=null,o=!1,c=null,m=()=>{clearTimeout(s),s=0,o&&a.keepList(t.list),o=!1;let y=c&&t.get(c.chatId);!c||!y||(a.keepChat({chat:y,entries:c.entries,hasOlder:c.hasOlder}),c=null)},w=()=>{s||=window.setTimeout(m,1e3)};e.subscribe(()=>{let{state:y}=e;c&&c.chatId!==y.chatId&&m(),!(y.entries===n||!y.loaded||y.hasNewer)&&(n=y.entries,c=y,w())}),t.addEventListener("change",()=>{t.loaded&&(o=!0,w())}),t.addEventListener("removed",y=>{let vt=y.detail;c?.chatId===vt&&(c=null),a.drop(vt)}),document.addEventListener("visibilitychange",()=>{document.hidden&&s&&m()})}var Oe=new Intl.ListFormat(kt,{type:"conjunction"});function P({members:a,agents:t=[]}){let s=[...a.map(({username:n,state:o})=>({name:n,state:o})),...t.map(({agent:n,state:o})=>({name:n,state:o}))].filter(({state:n})=>n==="joined").map(({name:n})=>n);return l(i("In a call: %(names)s"),{names:Oe.format(s)})}function ue({id:a,preview:t},{chatId:e,entries:s,removing:n}){if(a!==e||!n)return t;let o=s.findIndex(m=>m.id===n),c=s.findLastIndex((m,w)=>w!==o&&!m.deletedAt);return o<0||c>o?t:s[c]??null}var it=class extends g{static properties={_open:{state:!0},_error:{state:!0}};constructor(){super(),this._open=[],this._error=""}connectedCallback(){super.connectedCallback(),this._read(),b.addEventListener("person",t=>{t.detail.subject==="invitations"&&this._read()})}render(){return this._open.length?r`<section class="invitations" aria-label=${i("Invitations")}>
      <h3 class="chat-section">${i("Invitations")}</h3>
      <ul>
        ${k(this._open,({id:t})=>t,t=>this._item(t))}
      </ul>
      ${this._error?r`<p role="alert">${this._error}</p>`:f}
    </section>`:f}_item(t){let e={person:t.person,title:t.title||i("a chat")};return t.direction==="sent"?r`<li data-testid="invitation">
        <p>${l(i("You invited %(person)s to %(title)s."),e)}</p>
        <div>${this._button(t,"withdraw",i("Withdraw"))}</div>
      </li>`:r`<li data-testid="invitation">
      <p>${l(i("%(person)s invites you to %(title)s."),e)}</p>
      <div>
        ${this._button(t,"accept",i("Accept"))}${this._button(t,"decline",i("Decline"))}${this._button(t,"block",i("Block"))}
      </div>
    </li>`}_button(t,e,s){return r`<button
      type="button"
      class="button ${e==="accept"?"button-primary":"button-quiet"}"
      @click=${()=>this._answer(t,e)}
    >
      ${s}
    </button>`}async _answer(t,e){try{await S.post(`/invitations/${t.id}`,{answer:e}),this._error=""}catch(s){if(!C(s))throw s;this._error=s.message}await this._read()}async _read(){try{this._open=(await S.get("/invitations")).data}catch(t){if(!C(t))throw t}}};customElements.define("invitation-list",it);var qe=8,Re=120;function Ie({preview:a,participants:t}){return t.some(e=>e.kind==="agent"&&e.name===a?.name)?"…":i("sent a file")}function Me(a){let t=ue(a,d.state);if(!t)return r`<span class="chat-preview">${i("No messages yet")}</span>`;let{name:e,content:s}=t,n=e===_.username?i("You"):E.nameOf(e);return r`<span class="chat-preview is-said"
    ><span><bdi>${n}</bdi>: </span
    ><span dir="auto">${O(s,Re)||Ie(a)}</span></span
  >`}var V={pinned:i("Pinned"),people:i("People"),groups:i("Groups"),agents:i("Agents"),archived:i("Archived")},nt=r`<li class="skeleton">
  <i></i><span><b></b><b></b></span>
</li>`,at=a=>a>99?"99+":a,ot=class extends g{static properties={_selected:{state:!0},_wanted:{state:!0},_error:{state:!0}};constructor(){super(),this._selected="",this._wanted="",this._error="",this._had=null,this._removing=new T(this,d,({removing:t})=>t)}connectedCallback(){super.connectedCallback(),u.addEventListener("change",()=>this.requestUpdate()),E.addEventListener("change",()=>this.requestUpdate()),h.addEventListener("change",()=>this.requestUpdate()),u.addEventListener("load-error",t=>{!u.hasList&&b.state.phase!=="refused"&&(this._error=t.detail.message)})}select(t){this._selected=t}willUpdate(){this._had=this.contains(document.activeElement)?document.activeElement:null}updated(){this._had instanceof HTMLElement&&this._had.isConnected&&document.activeElement===document.body&&this._had.focus({preventScroll:!0})}render(){let t=u.hasList&&u.list.length>=qe;return r` <div class="chat-list-head">
        <h2>${i("Chats")}</h2>
        <button
          type="button"
          class="icon-button"
          aria-label=${i("Threads")}
          title=${i("Threads you follow")}
          data-testid="threads"
          @click=${()=>this._fire("open-threads")}
        >
          ${p("thread")}
        </button>
        <button
          type="button"
          class="icon-button"
          aria-label=${i("New chat")}
          title=${i("New chat")}
          data-testid="new-chat"
          @click=${()=>this._fire("new-chat")}
        >
          ${p("add")}
        </button>
      </div>
      <input
        type="search"
        class="field"
        placeholder=${i("Find a chat")}
        aria-label=${i("Find a chat")}
        ?hidden=${!t}
        @input=${e=>{this._wanted=e.target.value.trim()}}
      />
      <invitation-list></invitation-list>
      <nav aria-label=${i("Chats")}>
        <ul class="chat-items" aria-busy=${u.hasList||this._error?f:"true"}>
          ${this._items()}
        </ul>
      </nav>`}_items(){if(!u.hasList)return this._error?this._failed():[nt,nt,nt];let t=u.list;if(t.length===0)return this._none();let e=J(this._wanted),s=t.filter(o=>J(u.nameOf(o)).includes(e));if(s.length===0)return r`<li class="chat-none">${i("No matching chats.")}</li>`;let n=Object.keys(V).map(o=>({name:o,chats:s.filter(c=>Kt(c)===o)})).filter(o=>o.chats.length>0);return k(n,({name:o})=>o,o=>this._section(o.name,o.chats,n.length>1))}_section(t,e,s){let n=r`<ul class="chat-items" aria-label=${V[t]}>
      ${k(e,({id:o})=>o,o=>this._item(o))}
    </ul>`;return t==="archived"?r`<li>
        <details class="chat-archive" data-testid="archived">
          <summary>${p("chevron")}${V.archived} (${e.length})</summary>
          ${n}
        </details>
      </li>`:r`<li data-section=${t}>
      ${s?r`<h3 class="chat-section">${V[t]}</h3>`:f}${n}
    </li>`}_item(t){let e=u.nameOf(t),s=u.others(t),n=s.some(m=>m.kind==="user"&&m.online),o=Y(t),c=h.of(t.id);return r`<li
      class="chat-row"
      @contextmenu=${m=>this._menu(m,t)}
    >
      <a
        href="/chats/${t.id}"
        class="chat-item"
        data-testid="chat-item"
        data-chat=${t.id}
        aria-current=${t.id===this._selected?"page":f}
        @click=${m=>this._choose(m,t.id)}
      >
        ${Ut(t,e,s,n)}
        <span class="chat-item-main">
          <span class="chat-item-top"
            ><b dir="auto">${e}</b>${t.muted?r`<span class="muted-mark" title=${i("Muted")}
                    >${p("muted")}<span class="visually-hidden">${i("muted")}</span></span
                  >`:""}<time datetime=${t.latest_at}>${D(Date.parse(t.latest_at))}</time></span
          >
          <span class="chat-item-sub"
            >${c?r`<span class="chat-preview call-fact" dir="auto" data-testid="in-call"
                    >${p("phone")}${P(c)}</span
                  >`:Me(t)}${(t.unread_replies??0)>0?r`<span
                    class="unread is-replies"
                    data-testid="unread-replies"
                    aria-label=${l(i("%(count)s new in threads"),{count:t.unread_replies??0})}
                    title=${i("New replies in threads you follow")}
                    >${p("thread")}${at(t.unread_replies??0)}</span
                  >`:""}${o.mentions>0?r`<span
                    class="unread is-mention"
                    role="img"
                    data-testid="unread-mentions"
                    aria-label=${l(v("%(n)s mention of you","%(n)s mentions of you",o.mentions),{n:o.mentions})}
                    title=${i("Messages that mention you")}
                    >@${at(o.mentions)}</span
                  >`:""}${t.marked_unread&&!o.shown?r`<span
                    class="unread is-marked-unread"
                    role="img"
                    data-testid="marked-unread"
                    aria-label=${i("Marked as unread")}
                  ></span>`:""}${o.shown>0&&!(t.muted&&o.mentions)?r`<span
                    class="unread ${o.counts?"":"is-muted"}"
                    role="img"
                    aria-label=${l(i("%(n)s unread"),{n:o.shown})}
                    >${at(o.shown)}</span
                  >`:""}</span
          > </span
        >${n?r`<span class="visually-hidden">${i("online")}</span>`:""}</a
      ><button
        type="button"
        class="icon-button chat-more"
        aria-label=${l(i("Actions for %(name)s"),{name:e})}
        title=${i("Actions")}
        aria-haspopup="menu"
        aria-expanded="false"
        data-testid="chat-more"
        @click=${m=>this._menu(m,t)}
      >
        ${p("more")}
      </button>
    </li>`}_menu(t,e){t.preventDefault(),t.currentTarget.closest(".chat-row")?.querySelector(".chat-more")?.dispatchEvent(new CustomEvent("chat-menu",{bubbles:!0,detail:e}))}_none(){return r`<li class="chat-none">
      <p>${i("You have no chats yet.")}</p>
      <button type="button" class="button button-primary" @click=${()=>this._fire("new-chat")}>
        ${i("Start a chat")}
      </button>
    </li>`}_failed(){return r`<li class="chat-none">
      <p>${i("Couldn't load your chats.")} ${this._error}</p>
      <button type="button" class="button" @click=${()=>u.refresh()}>
        ${i("Try again")}
      </button>
    </li>`}_choose(t,e){t.metaKey||t.ctrlKey||t.shiftKey||(t.preventDefault(),Bt(e),this._fire("open-chat",e))}_fire(t,e){this.dispatchEvent(new CustomEvent(t,{bubbles:!0,detail:e}))}};customElements.define("chat-list",ot);var Ue=350,me={listens:i("listening"),thinks:i("thinking…"),waits:i("waiting for payment or approval"),speaks:i("speaking")},rt=class extends g{constructor(){super(),this._pressedAt=0,this._onChange=()=>this.requestUpdate(),this._announced=new Map,Qt(this,{session:()=>this._session,say:$})}connectedCallback(){super.connectedCallback(),h.addEventListener("change",this._onChange)}disconnectedCallback(){super.disconnectedCallback(),h.removeEventListener("change",this._onChange)}get _chat(){return h.active?u.get(h.active.chatId):void 0}get _session(){return this._chat?u.session(this._chat):null}get _candidates(){let t=h.active?.agents.joined.map(({agent:e})=>e)??[];return(this._chat?.participants??[]).filter(({kind:e,name:s,takes_calls:n})=>e==="agent"&&n&&!t.includes(s))}render(){let{active:t}=h,s=h.current?.state==="running"?this._candidates:[];return!t?.joined||!(t.agents.joined.length||s.length)?f:r`<ul class="call-agents" aria-label=${i("Agents in the call")}>
        ${k(t.agents.joined,({agent:n})=>n,n=>this._agent(n))}
      </ul>
      ${this._payments(t)} ${s.length?this._add(s):f}`}_agent(t){let{active:e}=h,{agent:s,host:n}=t,o=e?.agents.stateOf(s)??"listens",c=e?.agents.host?.agents.get(s),m=h.current?.members.find(({user_id:w})=>w===n)?.username??"";return r`<li
      class="call-agent is-${o}"
      data-testid="call-agent"
      data-name=${s}
      data-state=${o}
    >
      <span class="call-member ${o==="speaks"?"is-speaking":""}"
        >${x(s,"agent")}</span
      >
      <span class="call-text"
        ><b dir="auto">${s}</b
        ><small
          >${me[o]}${n===_.id?"":` · ${l(i("added by %(name)s"),{name:m})}`}</small
        ></span
      >
      ${c?this._speaking(s,c):this._takeOver(s)}
      <button
        type="button"
        class="icon-button"
        data-testid="remove-agent"
        aria-label=${l(i("Remove %(name)s from the call"),{name:s})}
        title=${l(i("Remove %(name)s from the call"),{name:s})}
        @click=${()=>e?.agents.remove(s)}
      >
        ${p("close")}
      </button>
    </li>`}_speaking(t,{isHandsFree:e,detector:s}){let n=h.active?.agents.host,o=s.isHeld?i("Send"):i("Talk");return r`<button
        type="button"
        class="button call-free"
        data-testid="hands-free"
        aria-pressed=${String(e)}
        title=${l(i("%(name)s answers after each pause; when off, it answers only what you say with Talk"),{name:t})}
        @click=${()=>n?.setHandsFree(t,!e)}
      >
        ${i("Hands-free")}
      </button>
      <button
        type="button"
        class="button call-talk ${s.isHeld?"is-held":""}"
        data-testid="talk"
        aria-label=${l(s.isHeld?i("Send what was said to %(name)s"):i("Talk to %(name)s: hold, or press once to start and once to stop"),{name:t})}
        @pointerdown=${()=>this._press(t)}
        @pointerup=${()=>this._lift(t)}
        @pointercancel=${()=>this._lift(t)}
        @keydown=${c=>this._key(c,()=>this._press(t))}
        @keyup=${c=>this._key(c,()=>this._lift(t))}
      >
        ${p("microphone")}${o}
      </button>`}_takeOver(t){return r`<button
      type="button"
      class="button"
      data-testid="take-over"
      title=${this._terms(t)}
      @click=${()=>h.active?.agents.add(t)}
    >
      ${i("Take over")}
    </button>`}_terms(t){let e=this._chat,s=e?.participants.find(n=>n.kind==="agent"&&n.name===t);return!e||!s?"":s.pricing?`${Pt(s.pricing)} — ${Vt(e)}.`:i("Its answers are free.")}_add(t){return r`<details
      class="call-add"
      @keydown=${e=>e.key==="Escape"&&this._close()}
    >
      <summary class="button" data-testid="choose-agent">
        ${p("add")}${i("Add an agent to the call")}
      </summary>
      <p>
        ${i("Its model receives what everyone in the call says unless they are muted. What is said to it, and its answers, appear in the chat.")}
      </p>
      ${t.map(({name:e})=>r`<p class="call-offer">
            <span
              ><b dir="auto">${e}</b>
              <small data-testid="agent-terms">${this._terms(e)}</small></span
            >
            <button
              type="button"
              class="button button-primary"
              data-testid="add-agent"
              data-name=${e}
              aria-label=${l(i("Add %(name)s to the call"),{name:e})}
              @click=${()=>this._addAgent(e)}
            >
              ${i("Add")}
            </button>
          </p>`)}
    </details>`}_payments(t){return(this._session?.payments.list??[]).filter(({responseId:s})=>t.agents.isAnswer(s)).map(s=>r`<payment-card .payment=${{...s}}></payment-card>`)}_addAgent(t){this._close(),h.active?.agents.add(t)}_close(){let t=this.querySelector("details");t?.open&&(t.open=!1,t.querySelector("summary")?.focus())}_press(t){let e=h.active?.agents.host;e?.agents.get(t)?.detector.isHeld?(this._pressedAt=0,e.release(t)):(this._pressedAt=performance.now(),e?.hold(t))}_lift(t){this._pressedAt&&performance.now()-this._pressedAt>=Ue&&h.active?.agents.host?.release(t)}_key(t,e){t.key!==" "&&t.key!=="Enter"||(t.preventDefault(),t.repeat||e())}updated(){for(let{agent:t}of h.active?.agents.joined??[]){let e=h.active?.agents.stateOf(t)??"listens",s=this._announced.get(t);this._announced.set(t,e),s===void 0?$(l(i("%(name)s is in the call"),{name:t})):s!==e&&e==="waits"&&$(`${t} ${me.waits}`)}for(let t of this._announced.keys())h.active?.agents.joined.some(({agent:e})=>e===t)||this._announced.delete(t)}};customElements.define("agents-row",rt);var pe="uamp:ring";var ct=()=>localStorage.getItem(pe)==="on",fe=a=>localStorage.setItem(pe,a?"on":"off"),H=class{start(){this._context||(this._context=new AudioContext,this._timer=setInterval(()=>this._play(),3e3),this._play())}stop(){clearInterval(this._timer),this._context?.close(),this._context=void 0}_play(){let t=this._context;if(t)for(let[e,s]of[[660,0],[880,.22]]){let n=t.createOscillator(),o=t.createGain(),c=t.currentTime+s;n.frequency.value=e,o.gain.setValueAtTime(0,c),o.gain.linearRampToValueAtTime(.08,c+.03),o.gain.linearRampToValueAtTime(0,c+.35),n.connect(o).connect(t.destination),n.start(c),n.stop(c+.4)}}};var Ne=9e3,lt=a=>String(a).padStart(2,"0");function De(a){let t=Math.max(0,Math.floor(a/1e3)),e=Math.floor(t/3600),s=Math.floor(t/60)%60;return e?`${e}:${lt(s)}:${lt(t%60)}`:`${s}:${lt(t%60)}`}function We(a){let t=a.target;return a.isComposing||t.isContentEditable||!!t.closest?.("input, textarea, select")}var ht=class extends g{static properties={_note:{state:!0},_devices:{state:!0}};constructor(){super(),this._note="",this._devices=[],this._ring=new H,this._announced=new Set,this._hasFocus=!1,this._after=""}connectedCallback(){super.connectedCallback(),h.addEventListener("change",()=>this._changed()),h.addEventListener("say",({detail:t})=>this._say(t)),addEventListener("keydown",t=>this._key(t)),setInterval(()=>this._tick(),1e3)}willUpdate(){this._hasFocus||=this.contains(document.activeElement),(h.active||h.ringing.length)&&(this._after=h.active?".call-button":"chat-view textarea")}updated(){let t=this._hasFocus;if(this._hasFocus=!1,!t||this.contains(document.activeElement))return;let e=(n,o)=>n.querySelector(o),s=e(this,h.active?".call-mute":".call-decline");s?s.focus():requestAnimationFrame(()=>e(document,this._after)?.focus())}render(){let{active:t,ringing:e}=h;return r`${t?this._active(t):f}${t?r`<agents-row></agents-row>`:f}${k(e,({call_id:s})=>s,s=>this._ringing(s))}
      <p class="call-note" role="status" ?hidden=${!this._note}>${this._note}</p>`}_ringing(t){let e=this._nameOf(t),s=u.get(t.chat_id),n=ct();return r`<section
      class="call-row is-ringing"
      aria-label=${l(i("%(name)s is calling"),{name:e})}
      data-testid="ringing"
    >
      <span class="call-faces">${x(e,"user")}</span>
      <div class="call-text">
        <b dir="auto">${l(i("%(name)s is calling"),{name:e})}</b
        ><small>${s?u.nameOf(s):""}</small>
      </div>
      <button
        type="button"
        class="icon-button"
        aria-pressed=${String(n)}
        aria-label=${i("Play a ringtone")}
        title=${i("Play a ringtone on this device")}
        @click=${()=>this._ringAloud(!n)}
      >
        ${p("bell")}
      </button>
      <button
        type="button"
        class="button call-decline"
        data-testid="decline"
        @click=${()=>h.decline(t)}
      >
        ${i("Decline")}
      </button>
      <button
        type="button"
        class="button button-primary"
        data-testid="accept"
        @click=${()=>h.start(t.chat_id,t.call_id)}
      >
        ${p("phone")}${i("Accept")}
      </button>
    </section>`}_active(t){let e=h.current,s=u.get(t.chatId),n=(e?.members??[]).filter(({state:m})=>m==="joined"||m==="ringing"),o=s?u.nameOf(s):i("Call"),c=t.muted?i("Unmute"):i("Mute");return r`<section
      class="call-row"
      aria-label=${l(i("Call in %(title)s"),{title:o})}
      data-testid="call-panel"
    >
      <ul class="call-faces" aria-label=${i("In the call")}>
        ${n.map(m=>this._member(m))}
      </ul>
      <div class="call-text">
        <b dir="auto">${o}</b><small data-testid="call-status">${this._status(e)}</small>
      </div>
      ${this._devices.length>1?r`<select
              class="field call-device"
              aria-label=${i("Microphone")}
              @change=${({target:m})=>h.useMicrophone(m.value)}
            >
              ${this._devices.map(({deviceId:m,label:w},y)=>r`<option value=${m} ?selected=${m===t.deviceId}>
                    ${w||l(i("Microphone %(n)s"),{n:y+1})}
                  </option>`)}
            </select>`:f}
      <button
        type="button"
        class="icon-button call-mute"
        aria-pressed=${String(t.muted)}
        aria-label=${i("Mute")}
        title="${c} (M)"
        aria-keyshortcuts="M"
        data-testid="mute"
        @click=${()=>this._mute()}
      >
        ${p(t.muted?"microphoneOff":"microphone")}
      </button>
      <button
        type="button"
        class="button call-leave"
        data-testid="leave"
        @click=${()=>this._leave()}
      >
        ${p("hangUp")}${i("Leave")}
      </button>
    </section>`}_member({user_id:t,username:e,state:s}){let{active:n}=h,o=n?.levels.speaking.has(t)&&!(t===_.id&&n.muted),c=t===_.id?"connected":h.connectionTo(t),m={ringing:i("is being called"),joined:o?i("speaking"):c==="connected"?"":c==="failed"?i("can't be reached"):i("is connecting")}[s];return r`<li
      class="call-member is-${s} ${o?"is-speaking":""} is-${c}"
      data-name=${e}
      title="${e}${m?` ${m}`:""}"
    >
      ${x(e,"user")}<span class="visually-hidden"
        >${t===_.id?i("You"):e}${m?` (${m})`:""}</span
      >
    </li>`}_status(t){if(!t||!h.active?.joined)return i("Connecting…");if(t.state==="ringing")return i("Ringing…");let e=t.members.filter(({user_id:o,state:c})=>c==="joined"&&o!==_.id),s=e.filter(({user_id:o})=>h.connectionTo(o)==="failed").map(({username:o})=>o),n=De(Date.now()-(t.answered_at??t.started_at));return s.length?l(i("%(time)s · No sound to or from %(names)s: your networks can't reach each other"),{time:n,names:s.join(", ")}):!e.length&&!h.active.agents.joined.length?l(i("%(time)s · No one else is here now"),{time:n}):h.active.muted?l(i("%(time)s · You are muted"),{time:n}):n}_nameOf(t){return t.members.find(({user_id:e})=>e===t.started_by)?.username??i("A member")}_mute(){let{active:t}=h;t&&(h.mute(!t.muted),$(t.muted?i("Muted"):i("Not muted")))}_leave(){h.leave(),$(i("You left the call"))}_ringAloud(t){fe(t),this._changed()}_key(t){t.key.toLowerCase()!=="m"||t.ctrlKey||t.metaKey||t.altKey||t.repeat||t.defaultPrevented||!h.active||We(t)||(t.preventDefault(),this._mute())}_changed(){let{ringing:t}=h;for(let e of t)this._announced.has(e.call_id)||(this._announced.add(e.call_id),$(l(i("%(name)s is calling"),{name:this._nameOf(e)})));t.length&&ct()&&!h.active?this._ring.start():this._ring.stop(),h.active&&!this._hadCall&&(this._hasFocus=document.activeElement?.matches(".call-button, call-bar *")??!1,this._listDevices()),this._hadCall=!!h.active,this.requestUpdate()}_tick(){(h.active||this.querySelector(".call-row"))&&this._changed()}async _listDevices(){let t=await navigator.mediaDevices.enumerateDevices();this._devices=t.filter(({kind:e})=>e==="audioinput")}_say(t){clearTimeout(this._timer),this._note=t,this._timer=setTimeout(()=>{this._note=""},Ne)}};customElements.define("call-bar",ht);var B=(a,t,e,s=f)=>r`<div class="empty" role="note">
    ${p(a)}
    <h1>${t}</h1>
    <p>${e}</p>
    ${s}
  </div>`,_e=a=>B("message",i("Choose a chat"),i("Pick one from the list, or start a new one."),r`<button type="button" class="button button-primary" @click=${a}>
      ${p("add")}${i("New chat")}
    </button>`);function ge({status:a,code:t="",message:e},s){return t==="removed"?B("alert",i("You're no longer in this chat"),i("Someone removed you or deleted the chat.")):a===404||["chat_not_found","forbidden"].includes(t)?B("alert",i("Chat not found"),i("It doesn't exist, or you're not a member. Ask a member to add you.")):B("alert",i("Couldn't load the chat"),`${e} ${i("Your text is kept.")}`,r`<button type="button" class="button button-primary" @click=${s}>
      ${i("Try again")}
    </button>`)}var K=class{constructor(t,e){this._session=t,this._say=e}decide(t){let e=this._session();e&&zt(e,t,this._say)}onQueue({id:t},e){this._sent(e==="start"?this._session()?.startQueued(t):this._session()?.removeQueued(t))}editAndAsk(t){this._sent(this._session()?.editAndAsk(t.detail))||t.preventDefault()}answerAgain({id:t}){this._sent(this._session()?.answerAgain(t))}stop(t){this._session()?.cancel(t.id),$(t.agent?l(i("Stopping %(name)s"),{name:t.agent}):i("Stopping the answer"))}_sent(t){return t||this._say(i("You're offline. Try again when you're back online.")),!!t}async editQueued({id:t},e){if(!e?.isEmpty){this._say(i("Send or clear what you're writing first."));return}let{chatId:s}=d.state,{data:n}=await S.get(`/chats/${encodeURIComponent(s)}/queue`),o=n.find(c=>c.id===t);!o||d.state.chatId!==s||(await S.send("DELETE",`/chats/${encodeURIComponent(s)}/queue/${t}`),e.putBack(o.text))}};function be(a,t){if(a.key!=="ArrowUp"||a.defaultPrevented||!(a.target instanceof HTMLTextAreaElement)||!t?.isEmpty)return;let e=d.state.entries.findLast(s=>W(s,_.id)&&!s.deletedAt);e&&(a.preventDefault(),d.dispatch({type:"editing",id:e.id}))}function $e(a,t){return a.isComposing||a.keyCode===229||!!a.target.value?!1:d.state.replyTo?(d.dispatch({type:"reply-to",entry:null}),!0):!!(t?.isEmpty&&t.stopOwn())}var Q=class{constructor(t,e){this._history=t,this._say=e}async begin(t,e){t&&await this.isShown(t)||await this._history.load(e)}async show(t){d.state.entries.some(e=>e.id===t)?d.dispatch({type:"target",id:t}):await this.goTo(()=>this.isShown(t))}async isShown(t){try{await this._history.loadAround(t)}catch(e){if(!C(e)||e.status!==404&&e.status!==400)throw e;return this._say(i("That message isn't in this chat.")),!1}return d.dispatch({type:"target",id:t}),!0}async goTo(t){try{await t()}catch(e){if(!C(e))throw e;this._say(e.message)}}};function ye(a,t){if(!a||document.hidden||!t?.atBottom)return;let e=Ot(d.state),s=d.state.readers.get(_.id)?.seq??0;!e||e.seq<=s||a.markRead(e.id)&&d.dispatch({type:"read",reader:{user_id:_.id,username:_.username,seq:e.seq}})}function we(a,{user_id:t,message_id:e}){let s=d.state.entries.find(({id:o})=>o===e),n=a?.participants.find(({kind:o,id:c})=>o==="user"&&String(c)===String(t));s&&n&&d.dispatch({type:"read",reader:{user_id:t,username:n.name,seq:s.seq}})}async function ve(a){let{data:t}=await S.get(`/chats/${encodeURIComponent(a)}/receipts`);return new Map(t.map(e=>[String(e.user_id),e]))}var Fe=300,dt=class extends g{constructor(){super(),this._pins=new T(this,d,({pins:t})=>t)}render(){let t=this._pins.value;if(!t.length)return f;let e=l(v("%(n)s pinned message","%(n)s pinned messages",t.length),{n:t.length});return r`<button
        type="button"
        class="icon-button pins-button"
        aria-label=${e}
        title=${e}
        aria-haspopup="dialog"
        aria-expanded="false"
        data-testid="pins"
        @click=${()=>this._open()}
      >
        ${p("pin")}<span class="pins-count" aria-hidden="true">${t.length}</span>
      </button>
      <div
        class="menu pinned"
        popover="auto"
        role="dialog"
        aria-label=${i("Pinned messages")}
        data-testid="pinned-list"
        @toggle=${s=>this._toggled(s)}
        @keydown=${s=>this._key(s)}
      >
        <h2>${i("Pinned messages")}</h2>
        <ul>
          ${t.map(s=>this._row(s))}
        </ul>
      </div>`}_row(t){return r`<li>
      <button type="button" class="pinned-message" @click=${()=>this._show(t)}>
        <span class="pinned-head"><b>${t.name}</b> <time>${D(t.at)}</time></span>
        <span class="pinned-text" dir="auto"
          >${O(t.content,Fe)||i("Files")}</span
        >
      </button>
      ${Wt()?r`<button
              type="button"
              class="icon-button"
              aria-label=${l(i("Unpin %(name)s's message"),{name:t.name})}
              title=${i("Unpin")}
              @click=${e=>this._unpin(e,t)}
            >
              ${p("close")}
            </button>`:f}
    </li>`}get _box(){return this.querySelector("[popover]")}get _button(){return this.querySelector(".pins-button")}_open(){this._box.showPopover(),this._button&&Ht(this._box,this._button),this._box.querySelector("button")?.focus()}_toggled({newState:t}){this._button?.setAttribute("aria-expanded",String(t==="open"))}_key(t){t.key==="Escape"&&(t.stopPropagation(),t.preventDefault(),this._close())}_close(){this._box.hidePopover(),this._button?.focus()}_show(t){this._close(),this.dispatchEvent(new CustomEvent("show-message",{bubbles:!0,detail:t.id}))}_unpin(t,e){Ft(t.currentTarget,()=>Yt(e,!1))}};customElements.define("pinned-list",dt);var ke=!1,ut=class extends g{constructor(){super(),this._onChange=()=>this.requestUpdate()}connectedCallback(){super.connectedCallback(),N.addEventListener("change",this._onChange)}disconnectedCallback(){super.disconnectedCallback(),N.removeEventListener("change",this._onChange)}render(){let{balance:t,isLow:e}=N;if(!t)return f;let s=G(t.available,t.currency);return r`<a
      href="/money"
      class="balance ${e?"is-low":""}"
      data-testid="balance"
      aria-label=${l(e?i("Balance %(amount)s, low. Top up"):i("Balance %(amount)s"),{amount:s})}
      title=${e?i("Your balance is low: top it up"):i("Your balance and spending")}
      >${p(e?"alert":"wallet")}<span>${s}</span></a
    >`}updated(){let{balance:t,isLow:e}=N;t&&e&&!ke&&$(l(i("Your balance is low: %(amount)s left."),{amount:G(t.available,t.currency)})),ke=!!(t&&e)}};customElements.define("balance-chip",ut);var Ye=4,mt=class extends g{static properties={chatId:{attribute:!1},membersShown:{attribute:!1}};constructor(){super(),this.chatId="",this.membersShown=!1,this._onChats=()=>this.requestUpdate()}connectedCallback(){super.connectedCallback(),u.addEventListener("change",this._onChats),h.addEventListener("change",this._onChats)}disconnectedCallback(){super.disconnectedCallback(),u.removeEventListener("change",this._onChats),h.removeEventListener("change",this._onChats)}render(){let t=this.chatId?u.get(this.chatId):void 0;return r`<header class="chat-head ${this.chatId?"":"is-bare"}">
      <button
        type="button"
        class="icon-button menu-button"
        aria-label=${i("Show chats")}
        title=${i("Show chats")}
        @click=${()=>this._fire("open-sidebar")}
      >
        ${p("back")}
      </button>
      <div class="chat-title">
        ${t?r`<h1 dir="auto">${u.nameOf(t)}</h1>
                <p>${this._inCall(t)}${this._facts(t)}</p>`:f}
      </div>
      ${t?r`<button
                type="button"
                class="icon-button search-button"
                aria-label=${i("Search")}
                title=${i("Search (Ctrl+Shift+F)")}
                aria-keyshortcuts="Control+Shift+F"
                data-testid="search"
                @click=${()=>this._fire("open-search")}
              >
                ${p("search")}</button
              ><pinned-list></pinned-list>`:f}
      ${t?this._call(t):f}
      <balance-chip></balance-chip>
      ${t?this._members(t):f}
    </header>`}_facts({home:t,participants:e}){let s=e.filter(c=>c.kind==="agent").length,n=e.filter(c=>c.kind==="user"),o=n.filter(c=>c.online||String(c.id)===_.id).length;return[t&&l(i("on %(server)s"),{server:t}),l(v("%(n)s person","%(n)s people",n.length),{n:n.length}),s&&l(v("%(n)s agent","%(n)s agents",s),{n:s}),o&&l(v("%(n)s online","%(n)s online",o),{n:o})].filter(Boolean).join(" · ")}_inCall({id:t}){let e=h.of(t);return e?r`<span class="call-fact" data-testid="in-call"
            >${p("phone")}${P(e)}</span
          >
          · `:f}_call(t){let e=h.active?.chatId===t.id,s=u.others(t);if(e||!St())return f;if(t.home||!s.some(({kind:o,takes_calls:c})=>c??o==="user"))return this._noCall(t,s);let n=h.of(t.id)?i("Join the call"):i("Call");return r`<button
      type="button"
      class="icon-button call-button ${h.of(t.id)?"is-live":""}"
      aria-label=${n}
      title=${n}
      data-testid="call"
      @click=${()=>this._startCall(t)}
    >
      ${p("phone")}
    </button>`}_noCall({home:t},e){if(!t&&!e.some(({kind:n})=>n==="user"))return f;let s=t?l(i("You can't call from here: this chat is hosted on %(server)s."),{server:t}):i("You can't call from here: calls don't reach people on other servers.");return r`<button
      type="button"
      class="icon-button call-button"
      aria-disabled="true"
      aria-label=${s}
      title=${s}
      data-testid="no-call"
    >
      ${p("phone")}
    </button>`}_startCall(t){!h.of(t.id)&&u.others(t).filter(({kind:s})=>s==="user").length>1?this.dispatchEvent(new CustomEvent("ask-to-call",{bubbles:!0,detail:t})):h.start(t.id)}_members(t){return r`<button
      type="button"
      class="members-button"
      data-testid="members"
      aria-controls="members"
      aria-expanded=${String(this.membersShown)}
      aria-label=${l(i("Members: %(facts)s"),{facts:this._facts(t)})}
      @click=${()=>this._fire("toggle-members")}
    >
      <span class="avatar-stack"
        >${u.others(t).slice(0,Ye).map(e=>x(e.name,e.kind,e.online))}</span
      >${p("members")}
    </button>`}_fire(t){this.dispatchEvent(new Event(t,{bubbles:!0}))}};customElements.define("chat-head",mt);var je=300,pt=class extends g{constructor(){super(),this._queue=new T(this,d,t=>t.queue)}render(){let t=this._queue.value;if(t.length===0)return"";let e=l(v("%(count)s message queued","%(count)s messages queued",t.length),{count:t.length});return r`<section class="queue" data-testid="queue" aria-label=${i("Queue")}>
      <h3 class="queue-title">${p("clock")}${e}</h3>
      <ol>
        ${k(t,({id:s})=>s,s=>this._item(s))}
      </ol>
    </section>`}_item(t){let e=t.user_id===_.id,s=t.status==="failed",n=E.nameOf(t.username),o=t.files?l(v("%(count)s file","%(count)s files",t.files),{count:t.files}):"",c=s?l(i("Couldn't send: %(reason)s"),{reason:t.reason||t.code}):t.status==="starting"?i("Sending…"):o;return r`<li
      class="queue-item ${s?"is-failed":""}"
      data-testid="queue-item"
      data-status=${t.status}
    >
      ${x(t.username,"user")}
      <span class="queue-words"
        ><p class="is-said" title=${t.text}>
          <b><bdi>${n}</bdi> </b
          ><span dir="auto">${O(t.text,je)||o}</span>
        </p>
        ${c?r`<small>${c}</small>`:""}</span
      >
      ${t.status==="starting"?"":this._acts(t,e,s)}
    </li>`}_acts(t,e,s){let n=(o,c,m)=>r`<button
        type="button"
        class="icon-button"
        aria-label=${c}
        title=${c}
        data-testid=${o}
        @click=${()=>this.dispatchEvent(new CustomEvent(o,{bubbles:!0,detail:t}))}
      >
        ${p(m)}
      </button>`;return r`${e?n("queue-start",s?i("Try again"):i("Send now"),s?"again":"send"):""}${e&&!t.files?n("queue-edit",i("Edit"),"edit"):""}${e||this._isOwner?n("queue-remove",i("Remove from the queue"),"bin"):""}`}get _isOwner(){return u.get(d.state.chatId)?.participants.some(({kind:t,id:e,role:s})=>t==="user"&&String(e)===_.id&&s==="owner")??!1}};customElements.define("queue-strip",pt);var Pe=["text","title","name","label","item","task"],Ve=["done","completed","checked"],Ee=a=>typeof a=="object"&&a!==null&&!Array.isArray(a),_t=a=>typeof a!="object"||a===null;function He(a){if(_t(a))return{words:String(a),isDone:null};let t=Ee(a)&&Pe.map(s=>a[s]).find(s=>typeof s=="string"),e=Ee(a)?Ve.map(s=>a[s]).find(s=>typeof s=="boolean"):void 0;return{words:t||JSON.stringify(a),isDone:e??null}}var Be=a=>r`<ul>
    ${a.map(t=>{let{words:e,isDone:s}=He(t),n=s===null?"":r`<span
              class="task-box ${s?"is-done":""}"
              role="img"
              aria-label=${s?i("Done"):i("Not done")}
            ></span>`;return r`<li class=${s===null?"":"task"} dir="auto">${n}${e}</li>`})}
  </ul>`;function Ke(a){return Array.isArray(a)?a.length?Be(a):r`<p class="state-empty">${i("Empty")}</p>`:_t(a)?r`<p dir="auto">${String(a)}</p>`:r`<pre tabindex="0">${JSON.stringify(a,null,2)}</pre>`}var Qe=([a,t])=>Array.isArray(t)?`${a}: ${t.length}`:_t(t)?`${a}: ${t}`:a,ft=class extends g{constructor(){super(),this._state=new T(this,d,t=>t.shared)}willUpdate(){this.hidden=!Object.keys(this._state.value.value).length,this.dataset.testid="shared-state"}render(){let{value:t,by:e}=this._state.value,s=Object.entries(t);return r` <details class="shared-state">
      <summary>
        ${p("check")}<b>${i("Shared")}</b
        ><span class="state-counts" dir="auto">${s.map(Qe).join(" · ")}</span>${e?r`<small>${l(i("by %(name)s"),{name:e})}</small>`:""}${p("chevron")}
      </summary>
      <div class="state-values">
        ${s.map(([n,o])=>r`<section>
              <h2 dir="auto">${n}</h2>
              ${Ke(o)}
            </section>`)}
      </div>
    </details>`}};customElements.define("shared-state",ft);var Ge=6e3,gt=class extends g{constructor(){super(),this._typists=new Map}disconnectedCallback(){super.disconnectedCallback();for(let{timer:t}of this._typists.values())clearTimeout(t)}typed({user_id:t,username:e,is_typing:s}){if(String(t)===_.id||(this.stopped(t),!s))return;let n=setTimeout(()=>this.stopped(t),Ge);this._typists.set(String(t),{name:e,timer:n}),this.requestUpdate()}stopped(t){clearTimeout(this._typists.get(String(t))?.timer),this._typists.delete(String(t)),this.requestUpdate()}willUpdate(){this.className=`typing-line ${this._typists.size?"is-on":""}`,this.dataset.testid="typing"}render(){let t=Array.from(this._typists.values(),({name:o})=>E.nameOf(o));if(t.length===0)return"";let[e,s]=t,n=t.length>2?i("Several people are typing"):l(s?i("%(first)s and %(second)s are typing"):i("%(first)s is typing"),{first:e,second:s});return r`<span class="dots is-small">${Nt}</span> ${n}`}};customElements.define("typing-line",gt);var bt=class extends g{static properties={chatId:{attribute:!1},membersShown:{attribute:!1},_error:{state:!0}};constructor(){super(),this.chatId="",this.membersShown=!1,this._opened=0,this._error=null,this._listeners=new AbortController,this.session=null,this.chat=null,this._wanted="",this._hasReaders=!1,this._ownShown=null,this._history=new Zt(d,S,F),this._places=new Q(this._history,t=>this._say(t)),this._announcements=new Xt,this._acts=new K(()=>this.session,t=>this._say(t))}connectedCallback(){super.connectedCallback(),this.addEventListener("show-message",t=>this.showMessage(t.detail)),this.addEventListener("choose-files",()=>this._composer?.chooseFiles()),this.addEventListener("say",t=>this._composer?.say(t.detail)),u.addEventListener("change",()=>{this.chat=this.chatId&&u.get(this.chatId)||this.chat,this._error?.code==="removed"&&u.get(this.chatId)&&this.open(this.chatId)}),u.addEventListener("removed",t=>this._removed(t.detail)),document.addEventListener("visibilitychange",()=>this._markRead()),addEventListener("focus",()=>this._markRead())}render(){return r`<chat-head .chatId=${this.chatId} .membersShown=${this.membersShown}></chat-head
      >${this._body()}`}_body(){return this.chatId?this._error?ge(this._error,()=>this.open(this.chatId)):k([this._opened],t=>t,()=>r` <shared-state></shared-state
          ><message-list
            .mayDecide=${t=>this.chat!==null&&Jt(this.chat,t)}
            @bottom=${()=>this._markRead()}
            @older=${()=>this._history.loadOlder()}
            @newer=${()=>this._history.loadNewer()}
            @newest=${()=>this._places.goTo(()=>this._history.loadNewest())}
            @place=${t=>this._places.goTo(()=>this._history.loadAround(t.detail))}
            @retry-turn=${t=>this.session?.retry(t.detail)}
            @discard-turn=${t=>this.session?.discard(t.detail)}
            @ask-again=${t=>this._composer?.write(t.detail)}
            @reply=${t=>this._reply(t.detail)}
            @answer-again=${t=>this._acts.answerAgain(t.detail)}
            @edit-and-ask=${t=>this._acts.editAndAsk(t)}
            @decide=${t=>this._acts.decide(t.detail)}
            @stop-answer=${t=>this._acts.stop(t.detail)}
          ></message-list>
          <typing-line></typing-line
          ><queue-strip
            @queue-start=${t=>this._acts.onQueue(t.detail,"start")}
            @queue-remove=${t=>this._acts.onQueue(t.detail,"remove")}
            @queue-edit=${t=>this._places.goTo(()=>this._acts.editQueued(t.detail,this._composer))}
          ></queue-strip>
          <chat-composer
            @keydown=${t=>be(t,this._composer)}
          ></chat-composer>`):_e(()=>this.dispatchEvent(new Event("new-chat",{bubbles:!0})))}get _list(){return this.querySelector("message-list")}get _typing(){return this.querySelector("typing-line")}get _composer(){return this.querySelector("chat-composer")}showNothing=()=>this._leave();async open(t,e=""){if(e&&t===this.chatId&&d.state.loaded){this.showMessage(e);return}this._leave(),this.chatId=t,this._wanted=e,this._opened+=1,d.dispatch({type:"opened",chatId:t}),await this.updateComplete;try{let s=ce(),n=await u.find(t);if(this.chatId!==t)return;this.chat=n;let o=u.session(n);this._listen(o),await this._composer?.open(n,o),await s,await this._loadHistory()}catch(s){if(!C(s))throw s;this.chatId===t&&(this._error=s)}}_leave(){this._listeners.abort(),this._listeners=new AbortController,this.session?.typing(!1),[this.session,this.chat,this._error]=[null,null,null],[this.chatId,this._hasReaders]=["",!1]}focusComposer(){this._composer?.focusText()}_removed(t){b.leave(t),t===this.chatId&&(this._leave(),this.chatId=t,d.dispatch({type:"opened",chatId:t}),this._error={code:"removed",message:""})}_say=t=>this._composer?.say(t);_listen(t){this.session=t;let{signal:e}=this._listeners,s=Mt(t,e);te(d,t,e),s("message",n=>this._onMessage(n)),s("transcript",n=>jt(d.state.entries.find(({id:o})=>o===n.message_id),n.transcript)),s("act",n=>this._onAct(n)),s("response",n=>this._onResponse(n)),s("response-end",n=>this._onResponseEnd(n)),s("typing",n=>this._typing?.typed(n)),s("read",n=>we(this.chat,n)),s("approvals",n=>this._announcements.approvals(t.approvals.list,n)),this._list&&new Gt(this._list,n=>this._say(n)).listen(t,()=>this.chat,e),s("ready",()=>this._markRead()),s("reset",n=>this._onReset(n)),s("limit",()=>this._say(i("You're sending messages too fast. Wait a moment."))),s("error",n=>this._onError(n))}async _loadHistory(){let{chatId:t,session:e}=this;if(!e)return;let s=ve(t);s.catch(()=>{});let n=this._wanted;if(this._wanted="",await this._places.begin(n,e.failures),this.chatId!==t||this.session!==e)return;if(this._history.isKept){tt(d,e),e.addEventListener("ready",()=>this._places.goTo(()=>this._readAgain()),{once:!0,signal:this._listeners.signal});return}let o=await s;this.chatId!==t||this.session!==e||(d.dispatch({type:"readers",readers:o}),this.chat?.unread&&d.dispatch({type:"unread-after",seq:o.get(_.id)?.seq??0}),tt(d,e),this._showRunning(),this._hasReaders=!0,this._markRead(),this._loadPins())}showMessage(t){return this._places.show(t)}_loadPins(){return this._places.goTo(()=>this._history.loadPins())}async _readAgain(){d.dispatch({type:"emptied"}),await this._loadHistory()}async _onReset(t){await this._readAgain(),this.session?.reconcile(t.epoch,d.state.entries.map(e=>({...e,created_at:e.at})))}async _onMessage({message:t,seq:e}){let s=At(t,e),{session:n}=this;if(n&&!(s.reply_to&&z(d.state,s)&&(s=await this._history.withQuote(s),n!==this.session))){if(n.approvals.clearClosed(),d.dispatch({type:"message",entry:s}),!z(d.state,s)){this._typing?.stopped(s.sender_id);return}W(s,_.id)?(this._list?.toBottom?.(),this._isReplayed(e)||this.dispatchEvent(new Event("message-sent",{bubbles:!0}))):s.sender_kind==="user"&&(this._typing?.stopped(s.sender_id),this._isReplayed(e)||this._announcements.message(s)),this._markRead()}}_onAct(t){let e=d.state.entries.find(({id:s})=>s===t.message_id);t.type==="message.deleted"&&t.thread&&this._countAgain(t.thread),Lt(e,t)&&this._places.goTo(()=>this._history.refresh(t.message_id)),t.type==="message.pinned"&&d.state.loaded&&this._loadPins()}_countAgain(t){let e=d.state.entries.find(s=>R(s)===t);e&&this._places.goTo(()=>this._history.refresh(e.id))}_reply(t){d.dispatch({type:"reply-to",entry:t}),this._composer?.focusText()}_onResponse(t){d.state.live.has(t.id)&&(this._announcements.answering(t),this._showRunning())}_onResponseEnd(t){t.thread||this._announcements.ended(t),this._showRunning()}_showRunning(){d.state.own!==this._ownShown&&(this._ownShown=d.state.own,this._composer?.showRunning(this.session?.ownResponses.filter(({thread:t})=>!t)??[]))}escape(t){return!!(this.session&&this.contains(t.target)&&$e(t,this._composer))}_markRead(){this._hasReaders&&ye(this.session,this._list)}_isReplayed(t){return t<=(this.session?.replayedTo??0)}async _onError(t){let{chatId:e}=this;t.fatal?await M()&&this.chatId===e&&(this._error=t):this._say(t.message||t.code)}};customElements.define("chat-view",bt);var Je=700;function ze({phase:a,lostAt:t=0}){return!t||!["connecting","waiting","offline"].includes(a)?"":` ${l(i("Disconnected since %(time)s."),{time:Tt(t)===0?xt(t):Ct(t)})}`}function Se({phase:a,attempt:t,retryAt:e,isRestart:s}){let n=Math.max(0,Math.ceil((e-Date.now())/1e3)),o=t>1?` ${l(i("(attempt %(attempt)s)"),{attempt:t})}`:"";return{open:"",connecting:i("Connecting…")+o,waiting:s?l(i("The server is restarting. Reconnecting in %(seconds)s s%(tries)s. Your messages will be sent automatically."),{seconds:n,tries:o}):l(i("Connection lost. Reconnecting in %(seconds)s s%(tries)s. Your messages are kept."),{seconds:n,tries:o}),offline:i("You're offline. Your messages will be sent when you're back online."),refused:i("You're signed out."),closed:i("Not connected.")}[a]}var Xe=({phase:a})=>u.hasList&&!u.loaded&&["connecting","waiting","offline"].includes(a)?` ${i("This is the chat as you last saw it.")}`:"",$t=class extends g{static properties={state:{attribute:!1}};constructor(){super(),this.state=null,this._timer=0,this._ticks=0}connectedCallback(){super.connectedCallback(),this.dataset.testid="banner",this.hidden=!this.state,this.setAttribute("role","region"),this.setAttribute("aria-label",i("Connection")),!this.state&&(b.addEventListener("state",()=>this._changed()),u.addEventListener("load-error",()=>this.requestUpdate()))}render(){let t=this.state??b.state,e=t.phase==="refused";return r`<span>${Se(t)}${ze(t)}${Xe(t)}</span
      ><button
        type="button"
        class="button"
        ?hidden=${t.phase==="connecting"}
        @click=${()=>this._try()}
      >
        ${e?i("Sign in"):i("Try now")}
      </button>`}_try(){b.state.phase==="refused"?location.reload():b.retryNow()}_changed(){let{phase:t,transport:e}=b.state;this.dataset.phase=t,this.dataset.transport=e,this.requestUpdate(),clearTimeout(this._timer),clearInterval(this._ticks),t==="open"?(e==="sse"?$(i("Your network blocks WebSockets. Connected without one; the chat list may lag by a few seconds.")):this.hidden||$(i("Connected again.")),this.hidden=!0):t==="refused"?this._appear():this.hidden?this._timer=window.setTimeout(()=>this._appear(),Je):this._tick()}_appear(){this.hidden=!1,this._tick(),$(Se(b.state))}_tick(){clearInterval(this._ticks),this.requestUpdate(),this._ticks=window.setInterval(()=>this.requestUpdate(),1e3)}};customElements.define("connection-banner",$t);var yt=class extends g{constructor(){super(),this._hasSent=!1,this._onAnswer=()=>this.requestUpdate(),this._onSent=()=>{this._hasSent=!0,this.requestUpdate()}}connectedCallback(){super.connectedCallback(),addEventListener("notification-permission",this._onAnswer),addEventListener("message-sent",this._onSent)}disconnectedCallback(){super.disconnectedCallback(),removeEventListener("notification-permission",this._onAnswer),removeEventListener("message-sent",this._onSent)}render(){return!this._hasSent||!se()?f:r`<div
      class="notice-card"
      role="group"
      aria-label=${i("Notifications")}
      data-testid="notification-banner"
    >
      <p>${i("Get notified about mentions and direct messages?")}</p>
      <div>
        <button type="button" class="button button-primary" @click=${()=>this._ask()}>
          ${i("Turn on")}
        </button>
        <button type="button" class="button button-quiet" @click=${()=>this._close()}>
          ${i("Not now")}
        </button>
      </div>
    </div>`}async _ask(){let t=await ee();$(t==="granted"?i("Notifications are on."):i("Notifications stay off. You can change this in Settings."))}_close(){ie(),this.requestUpdate(),$(i("Notifications stay off. You can change this in Settings."))}};customElements.define("notification-banner",yt);var Ze=document.querySelector('meta[name="application-name"]').content,L=matchMedia("(max-width: 759px)"),q=matchMedia("(min-width: 1180px)"),xe=matchMedia("(min-width: 1560px)"),wt=class extends HTMLElement{constructor(){super(),this._sidebar=this.querySelector(".sidebar"),this._main=this.querySelector(".main"),this._list=U("chat-list"),this._view=U("chat-view"),this._members=U("members-panel"),this._thread=U("thread-panel"),this._notifier=new ne(u,qt,_,E),this._chatId="",this._opened=void 0,this._sidebarOpen=!1,this._membersWanted=!1,this._membersAfter=!1,this._threadOrigin=null}connectedCallback(){this._showMe(),this._listen(),this._membersWanted=q.matches,this._loadLater(),b.connect(),this._go(X.chat_id||Ce(),"replace",Te())}_loadLater(){le();let t=async()=>{["closed","connecting"].includes(b.state.phase)||(b.removeEventListener("state",t),await this._opened,await j(),Dt())};b.addEventListener("state",t)}_listen(){A("open-chat",t=>this._openToWrite(t)),A("open-message",({chatId:t,messageId:e,threadId:s})=>this._go(t,"push",{messageId:e,threadId:s})),A("open-thread",(t,e)=>this._openThread(t,e)),A("close-thread",()=>this._closeThread()),addEventListener("open-sidebar",()=>{this._showSidebar(!0),this._list.querySelector("[aria-current], .chat-item")?.focus()}),addEventListener("toggle-members",()=>{this._membersWanted=!!this._members.hidden,this._membersAfter=!1,this._membersWanted&&!xe.matches&&this._leaveThread();let t=this._members.contains(document.activeElement);this._layOut(),!this._members.hidden&&!q.matches&&this._members.querySelector("button")?.focus(),this._members.hidden&&t&&this._view.querySelector(".members-button")?.focus()}),E.addEventListener("change",()=>this._showMe()),A("left-chat",t=>{t===this._chatId&&this._go("","replace")}),this.querySelector(".settings-button")?.addEventListener("click",()=>dispatchEvent(new CustomEvent("open-settings"))),addEventListener("pagehide",()=>Z.save()),de(F,u,d),ae(()=>this._forget()),this.querySelector("form[action$=logout]")?.addEventListener("submit",t=>this._signOut(t)),addEventListener("popstate",()=>this._go(Ce(),"none",Te())),addEventListener("keydown",t=>this._key(t)),this._main.addEventListener("pointerdown",t=>this._closeDrawers(t)),L.addEventListener("change",()=>this._layOut()),q.addEventListener("change",()=>this._layOut()),document.addEventListener("visibilitychange",()=>document.hidden||b.retryNow()),b.addEventListener("state",t=>{let{phase:e,attempt:s}=t.detail;e==="waiting"&&s===2&&M()}),u.addEventListener("load-error",t=>{let{status:e}=t.detail;(e===401||e===403)&&M()}),u.addEventListener("change",()=>this._showTitle()),X.chat_id||u.addEventListener("change",()=>this._openFirst(),{once:!0})}_go(t,e,{messageId:s="",threadId:n=""}={}){let o=t!==""&&t===this._chatId&&n!=="";this._chatId=t,t&&I.keep(t);let c=new URLSearchParams(Object.entries({thread:n,message:s}).filter(([,y])=>y)),m=t?`/chats/${encodeURIComponent(t)}`:"/",w=c.size?`${m}?${c}`:m;e==="push"&&w!==location.pathname+location.search&&window.history.pushState(null,"",w),e==="replace"&&w!==location.pathname+location.search&&window.history.replaceState(null,"",w),t?o||(this._opened=this._view.open(t,n||s)):this._view.showNothing(),this._showThread(t,n,s),this._list.select(t),this._notifier.show(t),this._members.chatId=t,this._showSidebar(!t),this._showTitle(),t&&L.matches&&this._main.focus({preventScroll:!0})}async _openToWrite(t){this._go(t,"push");let e=document.querySelector("dialog[open]");e&&await new Promise(o=>e.addEventListener("close",o,{once:!0}));let s=document.activeElement;await this._opened;let n=[s,document.body].includes(document.activeElement)&&!document.querySelector("dialog[open]");t&&t===this._chatId&&matchMedia("(pointer: fine)").matches&&n&&this._view.focusComposer()}_openFirst(){if(this._chatId)return;let[t,e]=u.list;!L.matches&&u.get(I.id)?this._go(I.id,"replace"):t&&!e&&(!L.matches||!t.preview)&&this._go(t.id,"none")}_openThread(t,e){this._thread.contains(e)||(this._threadOrigin=document.activeElement);let s=t.thread||R(t);this._go(this._chatId,"push",{threadId:s,messageId:t.thread?t.id:""})}_showThread(t,e,s){if(!t||!e){this._leaveThread();return}!xe.matches&&this._membersWanted&&([this._membersWanted,this._membersAfter]=[!1,!0]),this._thread.hidden=!1,j().then(n=>{n&&!this._thread.hidden&&this._thread.open(t,e,s)}),this._layOut()}_leaveThread(){this._thread.hidden||(this._thread.hidden=!0,this._thread.leave?.(),this._membersAfter&&([this._membersWanted,this._membersAfter]=[q.matches,!1]),this._layOut())}_closeThread(){let{rootId:t}=this._thread;this._leaveThread(),window.history.pushState(null,"",`/chats/${encodeURIComponent(this._chatId)}`);let e=Array.from(this._view.querySelectorAll("chat-message")).find(({entry:n})=>R(n)===t);((this._threadOrigin?.isConnected&&this._threadOrigin!==document.body?this._threadOrigin:e)??this._view.querySelector(".log"))?.focus({preventScroll:!0}),this._threadOrigin=null}_showTitle(){let t=u.get(this._chatId),e=u.list.map(s=>({...Y(s),replies:s.muted?0:s.unread_replies||0})).reduce((s,{shown:n,counts:o,replies:c})=>s+(o?n:0)+c,0);document.title=`${e?`(${e}) `:""}${t?u.nameOf(t):i("Chats")} · ${Ze}`}_signOut(t){let{turns:e}=b.outbox,s=l(v("%(count)s message hasn't been sent yet. Sign out and discard it?","%(count)s messages haven't been sent yet. Sign out and discard them?",e.length),{count:e.length});if(e.length&&!confirm(s)){t.preventDefault();return}this._forget(),oe()}_forget(){Z.forget(),I.forget(),Rt.forget(),b.outbox.forget()}_showMe(){let t=this.querySelector(".sidebar-account");t.querySelector(".avatar")?.replaceWith(It(_.username,"user"));let e=t.querySelector("b");e&&(e.textContent=E.nameOf(_.username))}_showSidebar(t){this._sidebarOpen=t,t&&L.matches&&(this._membersWanted=!1),this._layOut()}_layOut(){let t=L.matches;this.classList.toggle("has-sidebar",this._sidebarOpen||!t),this.classList.toggle("has-no-chat",!this._chatId),this._sidebar.inert=t&&!this._sidebarOpen,this._main.inert=t&&this._sidebarOpen,this._view.inert=t&&!this._thread.hidden,this._members.hidden=!this._membersWanted||!this._chatId,this._view.membersShown=!this._members.hidden}_closeDrawers(t){!q.matches&&!this._members.hidden&&!t.target.closest(".members-button")&&(this._membersWanted=!1,this._layOut())}_key(t){if(!(t.key!=="Escape"||t.defaultPrevented)&&!t.target.closest("dialog[open]")){if(!q.matches&&!this._members.hidden)this._members.contains(document.activeElement)&&this._view.querySelector(".members-button")?.focus(),this._membersWanted=!1;else if(this._thread.contains(t.target)){this._thread.escape()||this._closeThread();return}else{if(this._view.escape(t))return;if(this._thread.hidden)L.matches&&this._chatId&&(this._sidebarOpen=!1);else{this._closeThread();return}}this._layOut()}}};function Ce(){return decodeURIComponent(/^\/chats\/([^/]+)$/.exec(location.pathname)?.[1]||"")}function Te(){let a=new URLSearchParams(location.search);return{messageId:a.get("message")||"",threadId:a.get("thread")||""}}customElements.define("chat-app",wt);
